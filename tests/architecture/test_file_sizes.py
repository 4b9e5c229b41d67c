"""No file of Python is so long that a reader has to search in it."""

import subprocess

from fakes.repository import REPOSITORY

LIMIT = 400
# Users copy it into their images, and it has to be one file.
LIMITS = {"examples/relaunch_training.py": 500}


def test_no_file_has_more_lines_than_the_limit() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    files = [name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]
    lines = {name: len((REPOSITORY / name).read_text(encoding="utf-8").splitlines()) for name in files}

    assert len(files) > 1000
    assert {name: count for name, count in lines.items() if count > LIMITS.get(name, LIMIT)} == {}
