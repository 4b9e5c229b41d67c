"""The checkpoint contract itself: what is written, in which order, and what counts as complete."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from train import checkpoint
from train.checkpoint import (
    CheckpointUnusableError,
    Manifest,
    describe_object,
    find_complete_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from train.object_store import FileStore

OBJECTS = {"model/part-0.bin": b"\x00\x01", "state.json": b"{}"}


def manifest_of(step: int, attempt: int = 1, objects: dict[str, bytes] = OBJECTS) -> Manifest:
    described = tuple(describe_object(key, body) for key, body in objects.items())
    return Manifest("job-1", attempt, step, described, 0.5, datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC))


def save(folder: Path, step: int, attempt: int = 1) -> str:
    return save_checkpoint(f"file://{folder}/attempt-{attempt}", manifest_of(step, attempt), OBJECTS)


def test_a_manifest_is_stored_in_the_documented_form(tmp_path: Path) -> None:
    save(tmp_path, 120)

    stored = json.loads((tmp_path / "attempt-1/step-0000120/manifest.json").read_text())

    assert stored == {
        "format": 1,
        "job_id": "job-1",
        "attempt": 1,
        "step": 120,
        "objects": [
            {
                "key": "model/part-0.bin",
                "size": 2,
                "sha256": "b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2",
            },
            {
                "key": "state.json",
                "size": 2,
                "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            },
        ],
        "loss": 0.5,
        "saved_at": "2025-01-02T03:04:05+00:00",
    }


def test_a_checkpoint_is_read_as_it_was_saved(tmp_path: Path) -> None:
    uri = save(tmp_path, 120)

    loaded = load_checkpoint(uri)

    assert uri == f"file://{tmp_path}/attempt-1/step-0000120/"
    assert loaded == checkpoint.Checkpoint(uri, manifest_of(120), OBJECTS)


def test_the_manifest_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    put = FileStore.put

    def record(store: FileStore, key: str, body: bytes) -> None:
        written.append(key)
        put(store, key, body)

    monkeypatch.setattr(FileStore, "put", record)

    save(tmp_path, 7)

    assert written == ["step-0000007/model/part-0.bin", "step-0000007/state.json", "step-0000007/manifest.json"]


def test_a_manifest_that_does_not_describe_its_objects_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="step 7 does not describe the objects"):
        save_checkpoint(f"file://{tmp_path}/attempt-1", manifest_of(7, objects={"state.json": b"other"}), OBJECTS)

    assert list(tmp_path.iterdir()) == []


def test_the_newest_complete_checkpoint_is_that_of_the_highest_step_then_attempt(tmp_path: Path) -> None:
    for step, attempt in ((40, 1), (100, 1), (60, 2), (100, 10), (100, 9)):
        save(tmp_path, step, attempt)

    found = find_complete_checkpoints(f"file://{tmp_path}")

    assert [(manifest.step, manifest.attempt) for _, manifest in found] == [
        (100, 10), (100, 9), (100, 1), (60, 2), (40, 1),
    ]  # fmt: skip
    assert found[0][0] == f"file://{tmp_path}/attempt-10/step-0000100/"


def test_a_checkpoint_with_a_missing_or_short_object_or_without_manifest_is_not_complete(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40, 50):
        save(tmp_path, step)
    attempt = tmp_path / "attempt-1"
    (attempt / "step-0000020/state.json").unlink()
    (attempt / "step-0000030/model/part-0.bin").write_bytes(b"\x00")
    (attempt / "step-0000040/manifest.json").unlink()
    (attempt / "step-0000050/manifest.json").write_text("{")

    assert [manifest.step for _, manifest in find_complete_checkpoints(f"file://{tmp_path}")] == [10]


def test_a_job_that_saved_nothing_has_no_checkpoints(tmp_path: Path) -> None:
    assert find_complete_checkpoints(f"file://{tmp_path}/nothing-here") == []


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"objects": None}, {"objects": [{"key": "state.json"}]}, {"step": "last"}, {"saved_at": "today"}],
    ids=lambda change: next(iter(change)),
)
def test_a_manifest_of_another_form_is_unusable(change: dict[str, object]) -> None:
    document = json.loads(manifest_of(1).to_json()) | change

    with pytest.raises(CheckpointUnusableError, match="the manifest cannot be read"):
        Manifest.from_json(json.dumps(document).encode())


def test_keys_that_a_later_format_adds_to_a_manifest_are_ignored() -> None:
    document = json.loads(manifest_of(1).to_json()) | {"framework": "own"}

    assert Manifest.from_json(json.dumps(document).encode()) == replace(manifest_of(1))
