"""Where the repository lies: the local world runs from a checkout."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
