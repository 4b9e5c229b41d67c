"""What a commit that is pushed runs with: never with Relaunch's own environment while there is another."""

import os
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

from relaunch_local.stack.containers import ImageFiles
from relaunch_local.stack.pushed_images import PushedImages

OWN = Path(sys.executable).parent


class Images(PushedImages):
    """Those of an account that takes every tag."""

    def push(self, _repository: str, tags: Sequence[str], image: ImageFiles, name: str = "") -> Iterator[str]:
        self.pushed = image
        yield from tags


def folder_with(folder: Path, *programs: str) -> Path:
    folder.mkdir()
    for each in programs:
        (folder / each).write_text("#!/bin/sh\n")
        (folder / each).chmod(0o755)
    return folder


def push(folder: Path, *path: Path) -> tuple[str, str]:
    """Push with a PATH; return the `python` that is named, and the one that containers find."""
    with tarfile.open(folder / "files.tar", "w"):
        pass
    images = Images(folder)
    sent = os.pathsep.join(str(each) for each in path)
    members = {"repository": "trainer", "tags": ["a"], "entry_point": [], "command": [], "path": sent}
    answer = images.push_archive({"archive": str(folder / "files.tar"), **members})
    assert answer["pushed"] == ["a"]
    return answer["python"], os.path.realpath(which("python", path=images.pushed.path) or "")


def test_a_training_never_runs_with_relaunchs_own_python_while_there_is_another(tmp_path: Path) -> None:
    environment = folder_with(tmp_path / "environment", "python", "python3")
    system = folder_with(tmp_path / "system", "python3")
    linked = tmp_path / "linked"
    linked.symlink_to(OWN)

    named = str(environment / "python")
    assert push(tmp_path, OWN, linked, environment) == (named, named)
    named = str(system / "python3")
    # Twice, as for two commits with the same files.
    assert push(tmp_path, OWN, system) == push(tmp_path, system) == (named, named)
    assert push(tmp_path, OWN) == ("", str(Path().resolve()))
