"""What a training may write, which is no checkpoint: the one before it is found, and the reason given."""

import io
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fakes.builders import NOW
from relaunch.adapters.aws import checkpoints
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.ports import PermanentError
from relaunch.ports.checkpoints import TooManyObjectsError

BUCKET = "acme-checkpoints"
ROOT = f"s3://{BUCKET}/resnet/"
JOB = "resnet-1f2e3d4c"
OLDER = f"resnet/{JOB}/attempt-1/step-1/"


class Store:
    """The objects of one job, and what was read of them."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        complete = {f"{OLDER}m": b"x", f"{OLDER}manifest.json": manifest([{"key": "m", "size": 1}])}
        self.objects = complete | {f"resnet/{JOB}/{key}": body for key, body in objects.items()}
        self.bodies: list[io.BytesIO] = []

    def get_paginator(self, _: str) -> "Store":
        return self

    def paginate(self, **asked: str) -> Any:
        found = [
            {"Key": key, "Size": len(body), "LastModified": NOW}
            for key, body in self.objects.items()
            if key.startswith(asked["Prefix"])
        ]
        return [{"Contents": found}]

    def get_object(self, **asked: str) -> Any:
        self.bodies.append(io.BytesIO(self.objects[asked["Key"]]))
        return {"Body": self.bodies[-1]}


def manifest(objects: object) -> bytes:
    return json.dumps({"format": 1, "objects": objects}).encode()


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        (b"1e400", "its manifest lists no objects"),
        (b'[{"key": "m", "size": 1e400}]', "without a key or a whole number of bytes: a value of type dict"),
        (b'[{"key": "m", "size": Infinity}]', "without a key or a whole number of bytes"),
        (b'[{"key": "m", "size": NaN}]', "without a key or a whole number of bytes"),
        (b'[{"key": "m", "size": "1"}]', "without a key or a whole number of bytes"),
        (b'[{"key": "m", "size": true}]', "without a key or a whole number of bytes"),
        (b'[{"key": "m", "size": null}]', "without a key or a whole number of bytes"),
        (b'[{"key": "m"}]', "without a key or a whole number of bytes"),
        (b'[{"key": 7, "size": 1}]', "without a key or a whole number of bytes"),
        (b'["m"]', "without a key or a whole number of bytes: 'm'"),
        (b'{"m": 1}', "its manifest lists no objects"),
        (b"[]", "its manifest lists no objects"),
        (b"null", "its manifest lists no objects"),
        (b'[{"key": "m", "size": -1}]', "its object 'm' has 1 bytes instead of -1"),
        (b'[{"key": "m", "size": 1' + b"0" * 400 + b"}]", "its object 'm' has 1 bytes instead of a value of type int"),
        (b'[{"key": "m", "size": ' + b"9" * 5_000 + b"}]", "its manifest is not JSON: 'Exceeds the limit"),
        (b"[" * 20_000 + b"]" * 20_000, "its manifest is not JSON: 'maximum recursion depth"),
        (b"[" * 900 + b"]" * 900, "without a key or a whole number of bytes: a value of type list"),
        (b'[{"key": "\\ud800\\u001b[2J", "size": 1}]', r"its object '\ud800\x1b[2J' is missing"),
        (b'[{"key": "' + b"k" * 9_000 + b'", "size": 1}]', f"its object '{'k' * 80}' is missing"),
        (b"[" + b",".join([b"{}"] * 20_001) + b"]", "its manifest lists more than 20,000 objects"),
        (b"[" + b" " * (4 << 20) + b"]", "its manifest is larger than 4,194,304 bytes"),
    ],
    ids=lambda value: str(value[:40]),
)
def test_whatever_a_manifest_says_the_older_checkpoint_is_found_and_the_reason_is_given(objects, reason):
    store = Store({"attempt-1/step-2/manifest.json": b'{"format":1,"objects":' + objects + b"}"})
    store.objects[f"resnet/{JOB}/attempt-1/step-2/m"] = b"x"
    reasons: list[str] = []

    found = S3Checkpoints(store).newest_saved(ROOT, JOB, on_unusable=reasons.append)

    assert found.uri == f"s3://{BUCKET}/{OLDER}"
    (line,) = reasons
    assert line.startswith("attempt-1/step-2 cannot be used: ")
    assert reason in line
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 200


def test_no_more_of_a_manifest_is_read_than_it_may_have():
    store = Store({"attempt-1/step-2/manifest.json": b" " * (4 << 20) + b"{" * 100_000})
    ends: list[int] = []
    get = store.get_object

    def noting(**parameters: Any) -> Any:
        answer = get(**parameters)
        body = answer["Body"]
        answer["Body"] = SimpleNamespace(read=body.read, close=lambda: ends.append(body.tell()))
        return answer

    store.get_object = noting
    assert S3Checkpoints(store).newest_complete(ROOT, JOB) == f"s3://{BUCKET}/{OLDER}"
    assert ends[0] == (4 << 20) + 1


def test_a_step_may_be_a_time_in_nanoseconds():
    store = Store({"attempt-1/step-1764201234567890123/manifest.json": manifest([{"key": "../step-1/m", "size": 1}])})
    store.objects[f"resnet/{JOB}/attempt-1/step-1764201234567890123/../step-1/m"] = b"x"

    assert S3Checkpoints(store).newest_saved(ROOT, JOB).step == 1_764_201_234_567_890_123


@pytest.mark.parametrize(
    ("said", "loss"),
    [
        (b"0.25", 0.25),
        (b"3", 3.0),
        *((each, None) for each in (b"NaN", b"1e400", b"1" + b"0" * 400, b'"low"', b"true")),
    ],
)
def test_what_a_manifest_says_of_the_loss_is_a_finite_number_or_nothing(said, loss):
    said = b'{"format":1,"objects":[{"key":"m","size":1}],"loss":' + said + b"}"
    store = Store({"attempt-1/step-2/manifest.json": said, "attempt-1/step-2/m": b"x"})

    assert S3Checkpoints(store).newest_saved(ROOT, JOB).reported.loss == loss


@pytest.mark.parametrize("place", ["attempt-1/step-" + "9" * 400, "attempt-" + "9" * 7 + "/step-2"])
def test_numbers_that_no_training_comes_near_name_no_checkpoint(place):
    store = Store({f"{place}/m": b"x", f"{place}/manifest.json": manifest([{"key": "m", "size": 1}])})

    assert S3Checkpoints(store).newest_complete(ROOT, JOB) == f"s3://{BUCKET}/{OLDER}"


def test_nineteen_unusable_checkpoints_are_passed_over_and_of_more_one_is_named():
    unusable = {f"attempt-1/step-{step}/manifest.json": b"" for step in range(2, 21)}
    assert S3Checkpoints(Store(unusable)).newest_complete(ROOT, JOB) == f"s3://{BUCKET}/{OLDER}"

    store = Store({**unusable, "attempt-1/step-21/manifest.json": b""})
    with pytest.raises(PermanentError, match=rf"20 checkpoints .* cannot be used, and the next is {OLDER}"):
        S3Checkpoints(store).newest_complete(ROOT, JOB)
    assert len(store.bodies) == 20


def test_more_objects_than_can_be_looked_through_are_said_to_be_too_many(monkeypatch):
    monkeypatch.setattr(checkpoints, "MAX_LISTED", 3)
    assert S3Checkpoints(Store({"a": b""})).newest_complete(ROOT, JOB) == f"s3://{BUCKET}/{OLDER}"
    with pytest.raises(PermanentError, match=rf"more than 3 objects are below s3://{BUCKET}/resnet/{JOB}/: delete"):
        S3Checkpoints(Store({"a": b"", "b": b""})).newest_complete(ROOT, JOB)


def test_no_more_objects_are_listed_than_are_asked_for():
    store = Store({"a": b"", "b": b""})
    assert S3Checkpoints(store).newest_saved(ROOT, JOB, at_most=4).uri == f"s3://{BUCKET}/{OLDER}"
    with pytest.raises(TooManyObjectsError, match="more than 3 objects"):
        S3Checkpoints(store).newest_saved(ROOT, JOB, at_most=3)


def test_an_error_that_nothing_expects_is_permanent_and_names_the_manifest(monkeypatch):
    def fail(*_: object) -> str:
        raise MemoryError

    monkeypatch.setattr(checkpoints, "find_defect", fail)
    with pytest.raises(PermanentError, match=f"reading s3://{BUCKET}/{OLDER}manifest.json: MemoryError"):
        S3Checkpoints(Store({})).newest_complete(ROOT, JOB)
