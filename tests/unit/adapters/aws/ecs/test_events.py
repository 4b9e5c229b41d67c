import copy
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from fakes.builders import make_running_attempt
from fakes.scripted_aws import ScriptedAws
from fakes.webhook import EVENTS, load_event
from relaunch.adapters.aws.ecs.events import BOOT, observe_container_instance, observe_task, parse_ecs_event, phase_of
from relaunch.adapters.aws.ecs.placement_constraints import NEURON_DEVICES
from relaunch.core.jobs.attempt import AttemptKey, StopKind
from relaunch.core.launches.launch import (
    ContainerObservation,
    Node,
    NodeObservation,
    ReportedCause,
    StopReport,
    TaskObservation,
    TaskPhase,
)
from relaunch.core.lifecycle.stop_reason import classify_stop
from relaunch.core.machines.machine import Resources
from relaunch.ports import PermanentError

SAMPLES = sorted(EVENTS.glob("aws.ecs.task-state-change.*.json"))
MACHINE = "arn:aws:ecs:us-east-1:111122223333:container-instance/relaunch/0c9f3a6e2d7b4418b5a1e8c7f6d30219"
TASK_ARN = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/5f1c0e9a7b3d4c21a8e6f0d2b4c69713"


def observe(name: str) -> TaskObservation:
    observation = parse_ecs_event(load_event(f"aws.ecs.task-state-change.{name}"))
    assert isinstance(observation, TaskObservation)
    return observation


def test_running_task_is_read_whole() -> None:
    assert observe("running") == TaskObservation(
        task_id=TASK_ARN,
        owner=AttemptKey("resnet-1f2e3d4c", 1),
        phase=TaskPhase.RUNNING,
        version=4,
        status="RUNNING",
        report=StopReport(causes=frozenset({ReportedCause.ENDED})),
        containers={"main": ContainerObservation()},
        node=MACHINE,
        zone="us-east-1a",
        created_at=datetime(2026, 11, 3, 11, 0, 2, 118000, tzinfo=UTC),
        pulled=(
            datetime(2026, 11, 3, 11, 2, 12, 7000, tzinfo=UTC),
            datetime(2026, 11, 3, 11, 3, 40, 530000, tzinfo=UTC),
        ),
        started_at=datetime(2026, 11, 3, 11, 3, 42, 904000, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("stopped-exit-0", StopKind.SUCCESS),
        ("stopped-oom", StopKind.OUT_OF_MEMORY),
        ("stopped-spot", StopKind.HOST_LOST),
        # Relaunch called for it, because of a warning.
        ("stopped-user-initiated", StopKind.INTERRUPTION),
        ("stopped-no-capacity", StopKind.NO_CAPACITY),
    ],
)
def test_sample_of_a_stop_is_what_its_name_says(name: str, expected: StopKind) -> None:
    observation = observe(name)

    stop = classify_stop(observation, "main", make_running_attempt(), datetime(2026, 11, 3, 13, tzinfo=UTC))

    assert (observation.phase, observation.status) == (TaskPhase.STOPPED, "STOPPED")
    assert stop.kind is expected


@pytest.mark.parametrize(
    ("last_status", "desired_status", "phase"),
    [
        ("PROVISIONING", "RUNNING", TaskPhase.PENDING),
        ("PENDING", "RUNNING", TaskPhase.STARTING),
        ("ACTIVATING", "RUNNING", TaskPhase.STARTING),
        ("RUNNING", "RUNNING", TaskPhase.RUNNING),
        ("DEACTIVATING", "RUNNING", TaskPhase.STOPPING),
        ("STOPPING", "STOPPED", TaskPhase.STOPPING),
        ("DEPROVISIONING", "STOPPED", TaskPhase.STOPPING),
        ("PROVISIONING", "STOPPED", TaskPhase.STOPPING),
        ("RUNNING", "STOPPED", TaskPhase.STOPPING),
        ("STOPPED", "STOPPED", TaskPhase.STOPPED),
        ("STOPPED", "RUNNING", TaskPhase.STOPPED),
        ("DELETED", "STOPPED", TaskPhase.STOPPED),
        ("HIBERNATING", "RUNNING", TaskPhase.PENDING),
    ],
)
def test_statuses_of_ecs_are_a_phase(last_status: str, desired_status: str, phase: TaskPhase) -> None:
    assert phase_of(last_status, desired_status) is phase


def test_version_is_that_of_the_detail() -> None:
    event = load_event("aws.ecs.task-state-change.stopped-exit-0")

    assert event["version"] == "0"
    assert observe("stopped-exit-0").version == event["detail"]["version"]


def test_missing_exit_code_stays_missing() -> None:
    assert {name: each.exit_code for name, each in observe("stopped-spot").containers.items()} == {"main": None}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_unknown_members_are_ignored(path: Path) -> None:
    event = json.loads(path.read_text())
    expected = parse_ecs_event(event)
    event["detail"]["surprise"] = {"nested": [1]}
    event["detail"]["containers"][0]["surprise"] = None
    event["surprise"] = True

    assert parse_ecs_event(event) == expected


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_member_but_the_arn_may_be_missing_or_null(path: Path) -> None:
    event = json.loads(path.read_text())

    for name in set(event["detail"]) - {"taskArn"}:
        without, with_null = copy.deepcopy(event), copy.deepcopy(event)
        del without["detail"][name]
        with_null["detail"][name] = None

        assert parse_ecs_event(without) == parse_ecs_event(with_null)


def test_bare_task_has_nothing_but_its_arn() -> None:
    assert observe_task({"taskArn": TASK_ARN}) == TaskObservation(
        TASK_ARN, None, TaskPhase.PENDING, 0, report=StopReport(causes=frozenset({ReportedCause.ENDED}))
    )


def test_event_and_answer_about_the_same_task_are_read_alike() -> None:
    detail = load_event("aws.ecs.task-state-change.stopped-oom")["detail"]
    times = ("createdAt", "pullStartedAt", "pullStoppedAt", "startedAt", "executionStoppedAt", "stoppedAt")
    moments = {name: datetime.fromisoformat(detail[name]) for name in times}
    known = {
        "taskArn", "lastStatus", "desiredStatus", "version", "startedBy", "stopCode", "stoppedReason",
        "containerInstanceArn", "capacityProviderName", "availabilityZone",
    }  # fmt: skip
    containers = [
        {"name": "main", "lastStatus": "STOPPED", "exitCode": 137, "reason": detail["containers"][0]["reason"]}
    ]
    ecs = ScriptedAws("ecs")
    members = {name: detail[name] for name in known} | moments | {"containers": containers}
    ecs.answer("DescribeTasks", tasks=[members], failures=[])

    answered = ecs.client.describe_tasks(tasks=[TASK_ARN])["tasks"][0]

    assert observe_task(answered) == observe("stopped-oom")


def test_timestamps_are_parsed_in_every_format_of_ecs() -> None:
    moment = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
    forms = [
        "2026-11-03T12:00:00Z",
        "2026-11-03T12:00:00.000Z",
        "2026-11-03T14:00:00+02:00",
        moment.timestamp(),
        int(moment.timestamp()),
        moment.astimezone(timezone(timedelta(hours=2))),
    ]

    observations = [observe_task({"taskArn": TASK_ARN, "stoppedAt": form}) for form in forms]

    assert [observation.stopped_at for observation in observations] == [moment] * len(forms)
    assert all(observation.stopped_at.tzinfo is UTC for observation in observations if observation.stopped_at)


def test_container_instance_is_read() -> None:
    instance = Node(MACHINE, "i-0a1b2c3d4e5f60718", "g5.xlarge", "us-east-1a")

    observation = observe_container_instance(
        {
            "containerInstanceArn": MACHINE,
            "ec2InstanceId": "i-0a1b2c3d4e5f60718",
            "status": "ACTIVE",
            "version": 2,
            "registeredAt": "2026-11-03T11:01:53.512Z",
            "agentConnected": True,
            "runningTasksCount": 2,
            "pendingTasksCount": 1,
            "registeredResources": [
                {"name": "CPU", "type": "INTEGER", "integerValue": 4096},
                {"name": "MEMORY", "type": "INTEGER", "integerValue": 15000},
                {"name": "PORTS", "type": "STRINGSET", "stringSetValue": ["22", "2375"]},
                {"name": "GPU", "type": "STRINGSET", "stringSetValue": ["GPU-1", "GPU-2", "GPU-3"]},
            ],
            "attributes": [
                {"name": "com.amazonaws.ecs.capability.docker-remote-api.1.44"},
                {"name": "ecs.availability-zone", "value": "us-east-1a"},
                {"name": "ecs.instance-type", "value": "g5.xlarge"},
            ],
        }
    )

    assert observation == NodeObservation(
        instance,
        is_active=True,
        task_count=3,
        registered_at=datetime(2026, 11, 3, 11, 1, 53, 512_000, tzinfo=UTC),
        registered=Resources(cpu_units=4096, memory_mib=15_000, gpus=3),
    )


@pytest.mark.parametrize(("said", "count"), [("16", 16), ("9" * 128, 0), ("-1", 0), ("٣", 0), (None, 0)])
def test_a_machine_has_the_neuron_devices_that_its_attribute_says_unless_no_machine_has_them(
    said: str | None, count: int
) -> None:
    attributes = [{"name": NEURON_DEVICES, "value": said}]

    seen = observe_container_instance({"containerInstanceArn": "arn:x", "attributes": attributes})

    assert seen.registered.neuron_devices == count


@pytest.mark.parametrize(
    ("said", "boot"), [("1764361234:9:12.5:-", "1764361234:9:12.5:-"), ("9" * 65, ""), ("soon", ""), (None, "")]
)
def test_what_a_machine_reports_of_its_boot_is_kept_if_it_has_the_form_of_times(said: str | None, boot: str) -> None:
    attributes = [{"name": BOOT, "value": said}]

    assert observe_container_instance({"containerInstanceArn": "arn:x", "attributes": attributes}).boot == boot


def test_the_words_of_an_image_are_cut() -> None:
    task = {"taskArn": TASK_ARN, "stoppedReason": "s" * 5_000, "containers": [{"name": "main", "reason": "r" * 5_000}]}

    seen = observe_task(task)

    assert seen.report.text == "s" * 4_095 + "…"
    assert seen.containers["main"].report.text == "r" * 4_095 + "…"


@pytest.mark.parametrize(
    ("said", "is_connected"), [({"agentConnected": True}, True), ({"agentConnected": False}, False), ({}, False)]
)
def test_an_agent_is_connected_only_if_ecs_says_so(said: dict[str, bool], *, is_connected: bool) -> None:
    seen = observe_container_instance({"containerInstanceArn": "arn:x", "status": "ACTIVE", **said})

    assert (seen.is_active, seen.is_connected) == (True, is_connected)


def test_container_instance_outside_ec2_has_no_instance_id() -> None:
    observation = observe_container_instance({"containerInstanceArn": "arn:x"})

    assert observation.node == Node("arn:x", "")


@pytest.mark.parametrize(
    "detail_type",
    ["ECS Service Action", "ECS Deployment State Change", "", None],
)
def test_other_events_of_ecs_concern_nobody(detail_type: str | None) -> None:
    assert parse_ecs_event({"detail-type": detail_type, "detail": {}}) is None


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"detail-type": "ECS Task State Change", "detail": {}}, "taskArn"),
        ({"detail-type": "ECS Task State Change"}, "taskArn"),
        ({"detail-type": "ECS Task State Change", "detail": {"taskArn": ""}}, "taskArn"),
        ({"detail-type": "ECS Task State Change", "detail": {"taskArn": "a", "version": "new"}}, "version"),
        ({"detail-type": "ECS Task State Change", "detail": {"taskArn": "a", "containers": ["x"]}}, "containers.0"),
        ({"detail-type": "ECS Task State Change", "detail": "text"}, "detail"),
        ({"detail-type": "ECS Container Instance State Change", "detail": {}}, "containerInstanceArn"),
    ],
)
def test_invalid_event_is_a_permanent_error_with_its_location(event: dict[str, Any], words: str) -> None:
    with pytest.raises(PermanentError, match=words):
        parse_ecs_event(event)


def test_an_event_of_a_container_instance_is_read() -> None:
    sample = json.loads((EVENTS / "aws.ecs.container-instance-state-change.json").read_text())

    assert parse_ecs_event(sample) == NodeObservation(
        Node(MACHINE, "i-0a1b2c3d4e5f60718", "g5.xlarge", "us-east-1a"),
        is_active=True,
        registered_at=datetime(2026, 11, 3, 11, 1, 53, 512_000, tzinfo=UTC),
        registered=Resources(cpu_units=4096, memory_mib=15_829, gpus=1),
    )


@pytest.mark.parametrize("path", sorted(EVENTS.glob("sqs.task-changes.*.json")), ids=lambda path: path.stem)
def test_sample_messages_carry_events_of_ecs(path: Path) -> None:
    for record in json.loads(path.read_text())["Records"]:
        assert parse_ecs_event(json.loads(record["body"])) is not None
