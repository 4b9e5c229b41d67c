from typing import Any

from botocore.exceptions import EndpointConnectionError

from relaunch_local.demo.recorder import Recorder

TASK = "arn:aws:ecs:eu-central-1:111122223333:task/relaunch/8d723104f77383c13458a748e9bb17bc"


def test_the_table_is_read_once_when_stop_task_stops_a_task() -> None:
    reads = iter([[{"sk": "ATTEMPT#0001"}], []])
    recorder = Recorder(lambda: next(reads))
    running = {"detail-type": "ECS Task State Change", "detail": {"taskArn": TASK, "desiredStatus": "RUNNING"}}
    stopping = {"detail-type": "ECS Task State Change", "detail": {"taskArn": TASK, "stopCode": "UserInitiated"}}
    for event in (running, stopping, stopping):
        recorder.record(event)

    assert recorder.stored_at_stop == {TASK: [{"sk": "ATTEMPT#0001"}]}
    assert recorder.events == [running, stopping, stopping]


def test_a_task_that_ends_by_itself_is_no_reason_to_read_the_table() -> None:
    recorder = Recorder(list)
    recorder.record({"detail": {"taskArn": TASK, "stopCode": "EssentialContainerExited"}})

    assert recorder.stored_at_stop == {}


def test_a_table_that_cannot_be_read_does_not_keep_the_task_from_being_stopped() -> None:
    def fail() -> list[dict[str, Any]]:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")

    recorder = Recorder(fail)
    recorder.record({"detail": {"taskArn": TASK, "stopCode": "UserInitiated"}})

    assert recorder.stored_at_stop == {}
    assert len(recorder.events) == 1
