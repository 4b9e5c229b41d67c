import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from relaunch.adapters.github.signature import is_signed_by, read_digest
from relaunch_local.demo.delivery import deliver_push
from relaunch_local.demo.evidence import read_item, write_evidence
from relaunch_local.demo.recorder import Recorder

TASK = "arn:aws:ecs:eu-central-1:111122223333:task/relaunch/8d723104f77383c13458a748e9bb17bc"


def test_items_are_read_as_what_they_hold() -> None:
    item: dict[str, dict[str, Any]] = {
        "pk": {"S": "JOB#a"},
        "version": {"N": "6"},
        "share": {"N": "0.5"},
        "body": {"S": '{"state": "RUNNING"}'},
        "packed": {"B": zlib.compress(b'[{"rank": 1}]')},
    }

    assert read_item(item) == {
        "pk": "JOB#a",
        "version": 6,
        "share": 0.5,
        "body": {"state": "RUNNING"},
        "packed": [{"rank": 1}],
    }


def test_evidence_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    write_evidence({"at": datetime(2026, 1, 1, tzinfo=UTC), "text": "…"}, file)

    assert json.loads(file.read_text()) == {"at": "2026-01-01T00:00:00+00:00", "text": "…"}
    assert list(tmp_path.iterdir()) == [file]


def test_evidence_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "demo.json"
    file.write_text("{}")
    with pytest.raises(TypeError):
        write_evidence({"at": object()}, file)

    assert file.read_text() == "{}"
    assert list(tmp_path.iterdir()) == [file]


class TestRecorder:
    def test_the_table_is_read_once_when_stop_task_stops_a_task(self) -> None:
        reads = iter([[{"sk": "ATTEMPT#0001"}], []])
        recorder = Recorder(lambda: next(reads))
        running = {"detail-type": "ECS Task State Change", "detail": {"taskArn": TASK, "desiredStatus": "RUNNING"}}
        stopping = {"detail-type": "ECS Task State Change", "detail": {"taskArn": TASK, "stopCode": "UserInitiated"}}
        for event in (running, stopping, stopping):
            recorder.record(event)

        assert recorder.stored_at_stop == {TASK: [{"sk": "ATTEMPT#0001"}]}
        assert recorder.events == [running, stopping, stopping]

    def test_a_task_that_ends_by_itself_is_no_reason_to_read_the_table(self) -> None:
        recorder = Recorder(list)
        recorder.record({"detail": {"taskArn": TASK, "stopCode": "EssentialContainerExited"}})

        assert recorder.stored_at_stop == {}

    def test_a_table_that_cannot_be_read_does_not_keep_the_task_from_being_stopped(self) -> None:
        def fail() -> list[dict[str, Any]]:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")

        recorder = Recorder(fail)
        recorder.record({"detail": {"taskArn": TASK, "stopCode": "UserInitiated"}})

        assert recorder.stored_at_stop == {}
        assert len(recorder.events) == 1


class TestDelivery:
    def test_a_push_is_signed_over_the_bytes_that_are_sent(self) -> None:
        delivery = deliver_push("secret")
        digest = read_digest(delivery.headers["X-Hub-Signature-256"])

        assert digest is not None
        assert is_signed_by([b"secret"], delivery.body, digest)
        assert not is_signed_by([b"another"], delivery.body, digest)

    def test_every_delivery_has_an_id_of_its_own(self) -> None:
        first, second = deliver_push("secret"), deliver_push("secret")

        assert first.body == second.body
        assert first.headers["X-GitHub-Delivery"] != second.headers["X-GitHub-Delivery"]
