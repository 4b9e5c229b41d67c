"""Checkpoints that several processes save and resume together: all do the same, or none."""

import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from functional.examples.attempts import PATIENCE_SECONDS
from functional.examples.saving import steps_in
from functional.examples.test_relaunch_training import manifest_of
from relaunch_training import Checkpoints, FileStore, SaveFailedError, find_complete

SIZE = 3


def together(folder: Path, work: Callable[[Checkpoints], Any], **options: Any) -> list[Any]:
    """Do the work as each of the processes of an attempt; return what each returned or raised."""
    barrier = threading.Barrier(SIZE)
    values: list[Any] = [None] * SIZE

    def process(rank: int) -> Any:
        def gather(value: Any) -> list[Any]:
            values[rank] = value
            barrier.wait(PATIENCE_SECONDS)
            gathered = list(values)
            barrier.wait(PATIENCE_SECONDS)
            return gathered

        given = {"nodes": SIZE, "attempt": 1, **options}
        return work(Checkpoints(f"file://{folder}/job-1/attempt-{given['attempt']}", rank=rank, gather=gather, **given))

    with ThreadPoolExecutor(SIZE) as threads:
        futures = [threads.submit(process, rank) for rank in range(SIZE)]
    return [each.exception() or each.result() for each in futures]


def save_shards(checkpoints: Checkpoints) -> str | None:
    return checkpoints.save(10, {f"shard-{checkpoints.rank}": bytes(checkpoints.rank + 1)})


def test_each_saves_its_shards_and_the_first_writes_the_manifest_once_they_all_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FileStore.put
    stored: list[str] = []
    monkeypatch.setattr(FileStore, "put", lambda *given: (put(*given), stored.append(given[1])))

    uris = together(tmp_path, save_shards)

    assert uris == [f"file://{tmp_path}/job-1/attempt-1/step-0000010/"] * SIZE
    assert sorted(stored[:-1]) == ["shard-0", "shard-1", "shard-2"]
    assert stored[-1] == "manifest.json"
    manifest = manifest_of(uris[0])
    assert [(each["key"], each["size"]) for each in manifest["objects"]] == [
        ("shard-0", 1),
        ("shard-1", 2),
        ("shard-2", 3),
    ]
    assert manifest["nodes"] == SIZE


@pytest.mark.parametrize("failing", ["shard-1", "manifest.json"])
def test_what_one_cannot_save_is_saved_by_none_and_all_fail_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    put = FileStore.put

    def refuse(store: FileStore, key: str, *given: Any) -> None:
        if key == failing:
            raise SaveFailedError(f"{key}: out of reach")
        put(store, key, *given)

    monkeypatch.setattr(FileStore, "put", refuse)

    def work(checkpoints: Checkpoints) -> str | None:
        with checkpoints:
            return save_shards(checkpoints)

    assert [str(each) for each in together(tmp_path, work, signals=())] == [f"{failing}: out of reach"] * SIZE
    assert steps_in(tmp_path) == []


def test_two_files_of_one_name_are_refused_by_all_before_anything_is_saved(tmp_path: Path) -> None:
    raised = together(tmp_path, lambda checkpoints: checkpoints.save(10, {"state": b"1"}))

    assert [str(each) for each in raised] == ["two processes save a file of the same name: put their rank into it"] * 3
    assert not (tmp_path / "job-1").exists()


def test_processes_may_have_nothing_to_save_but_not_all_of_them(tmp_path: Path) -> None:
    saved = together(tmp_path, lambda each: each.save(10, {} if each.rank else {"state": b"1"}))
    raised = together(tmp_path, lambda each: each.save(20, {}))

    assert manifest_of(saved[1])["objects"][0]["key"] == "state"
    assert ["a checkpoint has 1 to 20,000 files, not 0" in str(each) for each in raised] == [True] * SIZE


def test_each_fetches_what_it_needs(tmp_path: Path) -> None:
    together(tmp_path, save_shards)

    def work(checkpoints: Checkpoints) -> list[str]:
        def needs(fetch: Callable[[str], Path]) -> Iterable[str]:
            assert fetch("shard-0").read_bytes() == b"\0"
            return [f"shard-{checkpoints.rank}"]

        found = checkpoints.resume(tmp_path / f"resumed-{checkpoints.rank}", needs=needs)
        assert found is not None
        return sorted(each.name for each in found.folder.iterdir())

    assert together(tmp_path, work, attempt=2) == [["shard-0"], ["shard-0", "shard-1"], ["shard-0", "shard-2"]]


@pytest.mark.parametrize("unusable", ["shard-1", "shard-7"])
def test_what_one_finds_damaged_or_not_in_the_manifest_all_go_without(tmp_path: Path, unusable: str) -> None:
    older = together(tmp_path, lambda each: each.save(5, {f"shard-{each.rank}": b"older"}))[0]
    newest = Path(together(tmp_path, save_shards)[0].removeprefix("file://"))
    for name in ("shard-1", "shard-7"):
        (newest / name).write_bytes(b"damaged")
    reasons: list[str] = []

    def work(checkpoints: Checkpoints) -> str:
        keys = iter([unusable, "shard-1"] if checkpoints.rank == 1 else ["shard-0"] * 2)
        found = checkpoints.resume(
            tmp_path / f"resumed-{checkpoints.rank}",
            lambda _, reason: reasons.append(reason),
            needs=lambda _: [next(keys)],
        )
        assert found is not None
        return found.uri

    assert together(tmp_path, work, attempt=2, resume_uri=f"file://{newest}") == [older] * SIZE
    assert len(reasons) == SIZE
    assert len(set(reasons)) == 1
    assert "in the manifest is" in reasons[0]


def test_a_checkpoint_of_another_number_of_machines_is_refused_unless_the_program_can_use_it(tmp_path: Path) -> None:
    uri = together(tmp_path, save_shards)[0]
    alone = Checkpoints(f"file://{tmp_path}/job-1/attempt-2", uri)

    with pytest.raises(ValueError, match="attempt-1/step-0000010/ is of 3 machines, not 1: any_nodes=True"):
        alone.resume(tmp_path / "resumed")
    alone.any_nodes = True
    assert alone.resume(tmp_path / "resumed")

    of_one = Checkpoints(f"file://{tmp_path}/job-1/attempt-2", attempt=2).save(20, {"state": b""})
    assert of_one in find_complete(f"file://{tmp_path}/job-1")
    raised = together(tmp_path, lambda each: each.resume(tmp_path / "others"), attempt=3, resume_uri=of_one)
    assert ["is of 1 machines, not 3" in str(each) for each in raised] == [True] * SIZE


def test_without_torchrun_the_rank_is_that_of_the_machine() -> None:
    environment = {"RELAUNCH_NODES": "4", "RELAUNCH_NODE_RANK": "2"}

    assert Checkpoints.from_environment(environment).rank == 2
    assert Checkpoints.from_environment(environment).nodes == 4
    assert Checkpoints.from_environment({**environment, "RANK": "9", "LOCAL_RANK": "1"}).rank == 9


@pytest.mark.parametrize(("signals", "waits"), [([], 200), ([5], 5)], ids=["none", "late"])
def test_a_stop_that_another_process_was_asked_for_is_waited_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: list[int], waits: int
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: 100 + round(sum(slept), 6))

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) in signals:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(time, "sleep", sleep)
    with Checkpoints(f"file://{tmp_path}/job-1/attempt-1") as checkpoints:
        checkpoints.request_stop(signal.SIGTERM)
        checkpoints.request_stop(signal.SIGTERM)
        checkpoints.save(10, {"state": b""})

        assert checkpoints.stop_requested == signal.SIGTERM
        assert checkpoints.stopped
    assert len(slept) == waits


def test_a_process_that_got_the_signal_itself_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", pytest.fail)
    with Checkpoints(f"file://{tmp_path}/job-1/attempt-1") as checkpoints:
        signal.raise_signal(signal.SIGTERM)
        checkpoints.request_stop(signal.SIGTERM)

    assert checkpoints.stop_requested == signal.SIGTERM
