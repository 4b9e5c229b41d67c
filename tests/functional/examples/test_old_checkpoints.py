"""What relaunch_training deletes when it is asked to: never the last one that is intact, and no training with it."""

import re
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, ReadTimeoutError

import relaunch_training
from fakes.aws import aws_in_process
from functional.examples.saving import OBJECTS, Answered, Attempt, steps_in
from relaunch_training import Checkpoints, FileStore, S3Store, s3_client

JOB = "s3://checkpoints/job-1/"


def test_old_checkpoints_are_deleted_when_asked_for_the_manifest_first(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step, number in ((10, 1), (20, 1), (30, 1), (35, 2), (40, 2)):
        attempt(number).save(step, OBJECTS)
    other = tmp_path / "job-1/notes.txt"
    other.write_text("mine")
    (tmp_path / "job-1/attempt-1/step-0000030/manifest.json").unlink()
    (tmp_path / "job-1/attempt-2/step-0000035/state.json").unlink()
    delete = FileStore.delete
    deleted: list[str] = []
    monkeypatch.setattr(FileStore, "delete", lambda self, keys: (deleted.extend(keys), delete(self, keys)))

    assert attempt(3).prune(9) == 0
    assert attempt(3).prune(2) == 1

    assert steps_in(tmp_path) == [(40, 2), (20, 1)]
    assert deleted[0] == "attempt-1/step-0000010/manifest.json"
    assert attempt(3).prune(1) == 3
    assert steps_in(tmp_path) == [(40, 2)]
    assert other.exists()
    assert attempt(3, rank=1).prune(1) == Checkpoints().prune(1) == attempt(3).prune(0) == 0


def test_what_is_damaged_is_not_kept_instead_of_what_is_intact(attempt: Attempt, tmp_path: Path) -> None:
    for step in (500, 1000):
        attempt().save(step, OBJECTS)
    (tmp_path / "job-1/attempt-1/step-0001000/state.json").write_bytes(b"[]")
    second = attempt(2)
    found = second.resume(tmp_path / "resumed")
    assert found is not None
    assert (found.step, second.prune(1)) == (500, 0)

    second.save(600, OBJECTS)

    assert (second.prune(2), second.prune(1)) == (0, 1)
    assert steps_in(tmp_path) == [(1000, 1), (600, 2)]


def test_what_an_attempt_resumed_from_or_saved_last_stays(attempt: Attempt, tmp_path: Path) -> None:
    chosen = attempt().save(500, OBJECTS)
    attempt().save(1000, OBJECTS)
    second = attempt(2, resume_uri=chosen)
    second.resume(tmp_path / "resumed")

    assert second.prune(1) == 0
    second.save(600, OBJECTS)
    assert second.prune(1) == 1
    assert steps_in(tmp_path) == [(1000, 1), (600, 2)]


def test_old_checkpoints_in_s3_are_deleted() -> None:
    with aws_in_process():
        s3_client.cache_clear()
        s3_client("s3:").create_bucket(Bucket="checkpoints")
        checkpoints = Checkpoints(f"{JOB}attempt-1/")
        for step in (1, 2, 3):
            checkpoints.save(step, OBJECTS)

        assert checkpoints.prune(2) == 1
        left = {uri.rsplit("/", 2)[1] for uri in relaunch_training.find_complete(JOB)}
        assert (left, len(s3_client("s3:").list_objects_v2(Bucket="checkpoints")["Contents"])) == (
            {"step-0000002", "step-0000003"},
            6,
        )
    s3_client.cache_clear()


@pytest.fixture(name="sent")
def _sent(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The job has 2,500 old objects and a newer checkpoint; a deletion is answered by what the test puts into it."""
    sent: list[Any] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        status, body = answers[0]
        sent.append(request)
        if isinstance(body, Exception):
            raise body
        return AWSResponse(request.url, status, {}, Answered(body.encode()))

    answers: list[Any] = [(200, "<DeleteResult/>")]
    keys = [f"attempt-1/step-0000001/{name}" for name in (*map(str, range(2_499)), "manifest.json")]
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    monkeypatch.setattr(S3Store, "sizes", lambda _self: dict.fromkeys(keys, 1))
    monkeypatch.setattr(relaunch_training, "find_complete", lambda _uri: iter([f"{JOB}attempt-1/step-0000002/"]))
    with aws_in_process():
        s3_client.cache_clear()
        s3_client("s3:").meta.events.register_first("before-send.s3", answer)
        yield answers, sent
    s3_client.cache_clear()


def test_a_thousand_objects_of_s3_are_deleted_by_a_call_the_manifest_first(sent: Any) -> None:
    assert Checkpoints(f"{JOB}attempt-2/").prune(1) == 1

    keys = [re.findall(b"<Key>job-1/attempt-1/step-0000001/([^<]+)</Key>", request.body) for request in sent[1]]
    assert [len(each) for each in keys] == [1_000, 1_000, 500]
    assert keys[0][0] == b"manifest.json"


def test_nothing_is_deleted_once_a_stop_is_requested(sent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(f"{JOB}attempt-2/")
    s3_client("s3:").meta.events.register("after-call.s3", lambda **_: setattr(checkpoints, "stop_requested", 15))

    assert checkpoints.prune(1) == 0
    assert len(sent[1]) == 1
    # Nor is anything looked for.
    monkeypatch.setattr(relaunch_training, "find_complete", None)
    assert checkpoints.prune(1) == 0


@pytest.mark.parametrize(
    "answer",
    [
        (503, "<Error><Code>SlowDown</Code></Error>"),
        (200, "<DeleteResult><Error><Key>a</Key><Code>SlowDown</Code></Error></DeleteResult>"),
        (0, ReadTimeoutError(endpoint_url="https://s3")),
    ],
    ids=str,
)
def test_a_store_that_is_down_ends_no_training_by_a_deletion(
    sent: Any, capsys: pytest.CaptureFixture[str], answer: tuple[int, Any]
) -> None:
    sent[0][:] = [answer]

    assert Checkpoints(f"{JOB}attempt-2/").prune(1) == 0
    assert re.match("relaunch: old checkpoints are not deleted: .*(SlowDown|Read timeout)", capsys.readouterr().err)


@pytest.mark.parametrize("form", ["{}", "<DeleteResult>{}</DeleteResult>"])
def test_a_deletion_that_is_refused_is_an_error(sent: Any, form: str) -> None:
    sent[0][:] = [(403 if form == "{}" else 200, form.format("<Error><Code>AccessDenied</Code></Error>"))]

    with pytest.raises(ClientError, match="AccessDenied"):
        Checkpoints(f"{JOB}attempt-2/").prune(1)
