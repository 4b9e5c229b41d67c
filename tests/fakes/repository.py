"""Where the files of the project lie."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
