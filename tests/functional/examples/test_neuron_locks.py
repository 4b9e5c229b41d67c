"""The locks of Neuron's compiler in a cache in S3: those of killed compilations go, those of running ones stay."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

import relaunch_neuron
from fakes.aws import aws_in_process, make_client
from relaunch_neuron import clear_stale_locks, delete_stale_locks

URL = "s3://acme-checkpoints/vision/neuron-cache/"
MODULE = "neuronxcc-2.21/MODULE_1+2/model"
LOCK = f"vision/neuron-cache/{MODULE}.hlo_module.pb.lock"
OTHERS = [f"vision/neuron-cache/{MODULE}.neff", "other/neuron-cache/model.lock"]


def test_a_lock_goes_once_it_is_older_than_any_compilation() -> None:
    with aws_in_process():
        s3 = make_client("s3")
        s3.create_bucket(Bucket="acme-checkpoints")
        assert delete_stale_locks(URL, 0) == []
        for key in (LOCK, *OTHERS):
            s3.put_object(Bucket="acme-checkpoints", Key=key, Body=b"")

        def keys() -> list[str]:
            return [each["Key"] for each in s3.list_objects_v2(Bucket="acme-checkpoints")["Contents"]]

        assert delete_stale_locks(URL, 3600) == []
        assert LOCK in keys()
        # All are older than in a minute.
        assert delete_stale_locks(URL, -60) == [f"s3://acme-checkpoints/{LOCK}"]
        assert sorted(keys()) == sorted(OTHERS)


class EndedError(Exception):
    """The test has seen enough."""


def test_it_looks_again_while_the_training_waits_and_after_what_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[Any] = [OSError("S3 is down"), [f"{URL}a.lock"]]
    threads: list[dict[str, Any]] = []

    def delete(url: str, stale_seconds: float) -> Any:
        assert (url, stale_seconds) == (URL, 3 * 3600)
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def sleep(seconds: float) -> None:
        assert seconds == 600
        if not answers:
            raise EndedError

    def make_thread(**given: Any) -> Any:
        threads.append(given)
        return SimpleNamespace(start=lambda: None)

    monkeypatch.setenv("NEURON_COMPILE_CACHE_URL", URL)
    monkeypatch.setattr(relaunch_neuron, "delete_stale_locks", delete)
    monkeypatch.setattr(relaunch_neuron, "Thread", make_thread)
    monkeypatch.setattr(time, "sleep", sleep)
    clear_stale_locks()
    (thread,) = threads
    with pytest.raises(EndedError):
        thread["target"](*thread["args"])

    assert thread["daemon"]
    assert capsys.readouterr().err.splitlines() == [
        f"relaunch: stale locks of {URL} are not deleted: S3 is down",
        f"relaunch: deleted {URL}a.lock, left by a compilation that was killed",
    ]


@pytest.mark.parametrize(
    "environment",
    [{}, {"NEURON_COMPILE_CACHE_URL": "/cache"}, {"NEURON_COMPILE_CACHE_URL": URL, "LOCAL_RANK": "1"}],
    ids=["no cache", "on this disk", "not the first process"],
)
def test_where_there_is_nothing_to_delete_no_thread_begins(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name in ("NEURON_COMPILE_CACHE_URL", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(relaunch_neuron, "Thread", None)

    clear_stale_locks()
