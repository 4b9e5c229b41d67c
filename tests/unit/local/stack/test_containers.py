"""Containers of what was pushed: each has the files of its image, and none those that another one wrote."""

import queue
import sys
from pathlib import Path
from typing import Any

import pytest

from relaunch_local.ecs import LogTarget, ProcessSpec, ProcessStartError
from relaunch_local.stack.containers import Containers, ImageFiles

TIMEOUT_SECONDS = 300.0
WRITES = "import os, sys; print(sorted(os.listdir()), sys.argv[1:]); open('left', 'w').close()"


class Account:
    """Implements what Containers needs of an emulator, and takes their output."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self.exits: queue.Queue[int] = queue.Queue()

    def environment(self) -> dict[str, str]:
        return {}

    def open(self, _target: LogTarget | None) -> None:
        pass

    def write(self, _target: LogTarget | None, _timestamp: int, text: str) -> None:
        self.lines.put(text)

    def spec(self, *command: str, image: str = "trainer@sha256:1", **members: Any) -> ProcessSpec:
        def exited(code: int, _reason: str | None) -> None:
            self.exits.put(code)

        return ProcessSpec("arn", "train", "main", image, command, {}, exited, **members)


def test_each_container_has_the_files_and_the_program_of_its_image_alone(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "train.py").write_text(WRITES)
    image = ImageFiles(folder, (sys.executable,), ("train.py", "of-the-image"))
    account: Any = Account()
    containers = Containers(lambda name: image if name.endswith("sha256:1") else None)
    containers.connect(account, {}, account)
    try:
        for members, command in (
            ({}, ()),
            ({}, ("train.py", "of-the-definition")),
            ({"has_entry_point": True}, (sys.executable, "train.py", "alone")),
        ):
            containers.start(account.spec(*command, **members))
            assert account.exits.get(timeout=TIMEOUT_SECONDS) == 0
        printed = [account.lines.get(timeout=TIMEOUT_SECONDS) for _ in range(3)]

        with pytest.raises(ProcessStartError, match="nothing was pushed as trainer:other"):
            containers.start(account.spec("true", image="trainer:other"))
        with pytest.raises(ProcessStartError, match="not found"):
            containers.start(account.spec("./nothing.sh", has_entry_point=True))
    finally:
        containers.close()

    assert printed == [f"['train.py'] ['{each}']" for each in ("of-the-image", "of-the-definition", "alone")]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_container_on_the_network_of_its_machine_has_its_address_and_another_one_has_none(tmp_path: Path) -> None:
    account: Any = Account()
    containers = Containers(lambda _image: ImageFiles(tmp_path))
    containers.connect(account, {}, account)
    printing = (sys.executable, "-c", "import os; print(os.environ.get('MACHINE_ADDRESS'))")
    try:
        for address in ("127.16.0.4", ""):
            containers.start(account.spec(*printing, address=address))
            assert account.exits.get(timeout=TIMEOUT_SECONDS) == 0
    finally:
        containers.close()

    assert [account.lines.get(timeout=TIMEOUT_SECONDS) for _ in range(2)] == ["127.16.0.4", "None"]
