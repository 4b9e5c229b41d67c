"""The files of relaunch_training: fetched once by the processes of a machine, and whole under their names."""

import errno
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, BinaryIO

import pytest

from functional.examples.saving import OBJECTS, Attempt
from relaunch_training import Checkpoint, FileStore

NAMES = ["attempt-1-step-0000001/model/part-0.bin", "attempt-1-step-0000001/state.json"]


def left_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_what_another_process_of_the_machine_fetched_is_not_fetched_again(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt().save(1, OBJECTS)
    first = attempt(2).resume(tmp_path / "resumed")
    fetch = FileStore.fetch
    keys: list[str] = []
    monkeypatch.setattr(FileStore, "fetch", lambda self, key, target: (keys.append(key), fetch(self, key, target)))

    assert attempt(2, rank=1).resume(tmp_path / "resumed") == first
    assert set(keys) == {"manifest.json"}


def test_processes_that_begin_together_fetch_each_object_once(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt().save(1, OBJECTS)
    together = Barrier(4)
    fetch = FileStore.fetch
    keys: list[str] = []

    def slow_fetch(store: FileStore, key: str, target: BinaryIO) -> None:
        fetch(store, key, target)
        if key == "manifest.json":
            together.wait(60)
        else:
            keys.append(key)
            time.sleep(0.02)

    def resume(rank: int) -> Checkpoint | None:
        return attempt(2, rank=rank, resume_uri=f"file://{tmp_path}/job-1/attempt-1/step-0000001/").resume(
            tmp_path / "resumed"
        )

    monkeypatch.setattr(FileStore, "fetch", slow_fetch)
    with ThreadPoolExecutor(4) as threads:  # a lock is of an open file, not of a process
        found = list(threads.map(resume, range(4)))

    assert sorted(keys) == sorted(OBJECTS)
    assert [each and each.step for each in found] == [1, 1, 1, 1]
    assert left_in(tmp_path / "resumed") == [".attempt-1-step-0000001.lock", *NAMES]


def break_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)


def hide_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)


@pytest.mark.parametrize("break_it", [break_flock, hide_fcntl])
def test_where_files_cannot_be_locked_each_process_fetches_for_itself(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[pytest.MonkeyPatch], None]
) -> None:
    attempt().save(1, OBJECTS)
    break_it(monkeypatch)

    assert attempt(2).resume(tmp_path / "resumed") is not None


@pytest.mark.parametrize("error", [None, OSError("the connection is gone")])
def test_nothing_is_left_of_what_was_not_fetched(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError | None
) -> None:
    attempt().save(1, OBJECTS)
    fetch = FileStore.fetch

    def break_off(store: FileStore, key: str, target: BinaryIO) -> None:
        fetch(store, key, target) if key == "manifest.json" else target.write(b"damaged")
        if error and key != "manifest.json":
            raise error

    monkeypatch.setattr(FileStore, "fetch", break_off)
    if error:
        with pytest.raises(OSError, match="the connection is gone"):
            attempt(2).resume(tmp_path / "resumed")
    else:
        assert attempt(2).resume(tmp_path / "resumed") is None

    assert left_in(tmp_path / "resumed") == [".attempt-1-step-0000001.lock"]


def test_a_manifest_that_is_there_after_a_power_cut_has_its_objects(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync
    replace = Path.replace
    done: list[str] = []

    def note_sync(descriptor: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name.split('.')[-1]}")
        sync(descriptor)

    def note_replace(path: Path, target: Any) -> Path:
        done.append(f"name {target.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    attempt().save(1, OBJECTS)

    names = ["part-0.bin", "state.json", "manifest.json"]
    assert done == [*(each for name in names for each in ("sync partial", f"name {name}")), "sync step-0000001"]
