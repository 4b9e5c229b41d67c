"""The path of the repository; relaunch_local runs from a checkout."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
