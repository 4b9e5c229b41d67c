from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import TASK_STATE_CHANGE, SimulatedRegion, container
from relaunch_local.ecs import Script, Timing


def test_a_task_goes_from_provisioning_to_stopped_and_counts_every_change(offered: SimulatedRegion) -> None:
    arn = offered.run_one("g5-spot", startedBy="job-1/1")

    task = offered.wait_for(arn, "STOPPED")

    changes = [
        (each["lastStatus"], each["desiredStatus"], each["version"]) for each in offered.details(TASK_STATE_CHANGE)
    ]
    assert changes == [
        ("PROVISIONING", "RUNNING", 1),
        ("PENDING", "RUNNING", 2),
        ("RUNNING", "RUNNING", 3),
        ("DEPROVISIONING", "STOPPED", 4),
        ("STOPPED", "STOPPED", 5),
    ]
    assert task["version"] == 5
    assert task["stopCode"] == "EssentialContainerExited"
    assert task["stoppedReason"] == "Essential container in task exited"
    assert task["containers"][0]["exitCode"] == 0
    assert task["stoppingAt"] - task["startedAt"] == timedelta(seconds=600)
    assert task["createdAt"] < task["pullStartedAt"] < task["pullStoppedAt"] <= task["startedAt"] < task["stoppedAt"]


def test_the_command_and_environment_of_the_override_reach_the_container(region: SimulatedRegion) -> None:
    region.provider()
    definition = container(
        entryPoint=["python"],
        command=["old.py"],
        environment=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
    )
    region.register("train", definition)
    override = {"name": "main", "command": ["new.py"], "environment": [{"name": "B", "value": "2"}]}
    arn = region.run_one("g5-spot", overrides={"containerOverrides": [override]})

    region.wait_for(arn, "RUNNING")

    spec = region.processes.started[0]
    assert spec.command == ("python", "new.py")
    assert (spec.environment["A"], spec.environment["B"]) == ("1", "2")
    assert region.task(arn)["overrides"]["containerOverrides"] == [override]


def test_output_goes_where_awslogs_would_send_it(region: SimulatedRegion) -> None:
    region.provider()
    options = {"awslogs-group": "/train", "awslogs-region": "us-east-1", "awslogs-stream-prefix": "gpu"}
    region.register("train", container(logConfiguration={"logDriver": "awslogs", "options": options}))
    arn = region.run_one("g5-spot")
    region.wait_for(arn, "RUNNING")

    target = region.processes.started[0].log_target

    assert target is not None
    assert (target.group, target.stream) == ("/train", f"gpu/main/{arn.rpartition('/')[2]}")


@pytest.mark.parametrize(
    ("host", "inside", "code", "words"),
    [
        (3, 0, 0, ""),
        (3, 3, 1, "Specified core not accessible! is /dev/neuron0 visible to process?"),
        (6, 0, None, 'adding custom device "/dev/neuron6": no such file or directory'),
    ],
)
def test_a_neuron_device_has_to_be_there_and_the_first_of_the_container(
    region: SimulatedRegion, host: int, inside: int, code: int | None, words: str
) -> None:
    region.provider("inf2", "inf2.24xlarge")
    device = {"hostPath": f"/dev/neuron{host}", "containerPath": f"/dev/neuron{inside}"}
    region.register("train", container(linuxParameters={"devices": [device]}))

    (ended,) = region.wait_for(region.run_one("inf2"), "STOPPED")["containers"]

    assert ended.get("exitCode") == code
    assert words in ended.get("reason", "")


def test_stop_task_sends_sigterm_and_keeps_its_reason(offered: SimulatedRegion) -> None:
    offered.script = lambda _spec: Script(runtime_seconds=None, sigterm_delay_seconds=10.0, sigterm_exit_code=0)
    arn = offered.run_one("g5-spot", tags=[{"key": "a", "value": "b"}])
    offered.wait_for(arn, "RUNNING")

    answer = offered.ecs.stop_task(cluster="c", task=arn, reason="interruption")["task"]
    offered.ecs.stop_task(cluster="c", task=arn, reason="again")
    task = offered.wait_for(arn, "STOPPED")

    assert (answer["desiredStatus"], answer["lastStatus"]) == ("STOPPED", "RUNNING")
    assert (task["stopCode"], task["stoppedReason"]) == ("UserInitiated", "interruption")
    assert task["containers"][0]["exitCode"] == 0
    assert task["tags"] == []


@pytest.mark.parametrize(
    ("stop_timeout", "factor", "seconds"), [(None, 1, 30), (90, 1, 90), (90, 40, 3_600), (None, 40, 30)]
)
def test_a_container_that_ignores_sigterm_is_killed_after_the_stop_timeout(
    region: SimulatedRegion, stop_timeout: int | None, factor: float, seconds: int
) -> None:
    region.provider()
    region.simulator.set_timing(replace(region.simulator.region.timing, stop_timeout_factor=factor))
    region.register("train", container(**({} if stop_timeout is None else {"stopTimeout": stop_timeout})))
    region.script = lambda _spec: Script(runtime_seconds=None, sigterm_delay_seconds=None)
    arn = region.run_one("g5-spot")
    region.wait_for(arn, "RUNNING")

    region.ecs.stop_task(cluster="c", task=arn)
    task = region.wait_for(arn, "STOPPED")

    assert task["containers"][0]["exitCode"] == 137
    assert task["executionStoppedAt"] - task["stoppingAt"] == timedelta(seconds=seconds)


def test_a_sigterm_that_nobody_handles_is_reported_as_143(offered: SimulatedRegion) -> None:
    arn = offered.run_one("g5-spot")
    offered.wait_for(arn, "RUNNING")

    offered.ecs.stop_task(cluster="c", task=arn)

    assert offered.wait_for(arn, "STOPPED")["containers"][0]["exitCode"] == 143


def test_a_task_that_is_stopped_while_it_waits_never_starts(offered: SimulatedRegion) -> None:
    arn = offered.run_one("g5-spot")

    offered.ecs.stop_task(cluster="c", task=arn)
    task = offered.task(arn)
    offered.clock.advance(600)

    assert (task["lastStatus"], task["stopCode"]) == ("STOPPED", "UserInitiated")
    assert "startedAt" not in task
    assert offered.processes.started == []


def test_a_task_that_is_stopped_while_its_image_is_pulled_has_no_exit_code(offered: SimulatedRegion) -> None:
    arn = offered.run_one("g5-spot")
    offered.wait_for(arn, "PENDING")
    offered.clock.advance(5)

    offered.ecs.stop_task(cluster="c", task=arn)
    task = offered.wait_for(arn, "STOPPED")

    assert "startedAt" not in task
    assert "exitCode" not in task["containers"][0]
    assert offered.processes.started == []


def test_when_an_essential_container_exits_the_others_are_stopped(region: SimulatedRegion) -> None:
    region.provider()
    region.register(
        "train", container(), container(name="side", essential=False), container(name="quick", essential=False)
    )
    runtimes = {"main": 100.0, "side": None, "quick": 10.0}
    region.script = lambda spec: Script(
        runtime_seconds=runtimes[spec.container], exit_code=3, sigterm_delay_seconds=20.0
    )
    arn = region.run_one("g5-spot")
    region.wait_for(arn, "RUNNING")

    region.clock.advance(50)
    assert region.task(arn)["lastStatus"] == "RUNNING"
    task = region.wait_for(arn, "STOPPED")

    assert {each["name"]: each["exitCode"] for each in task["containers"]} == {"main": 3, "side": 143, "quick": 3}
    assert task["stopCode"] == "EssentialContainerExited"
    assert task["executionStoppedAt"] == task["stoppingAt"] < task["stoppedAt"] - timedelta(seconds=20)


def test_an_out_of_memory_kill_carries_dockers_reason(offered: SimulatedRegion) -> None:
    reason = "OutOfMemoryError: Container killed due to memory usage"
    offered.script = lambda _spec: Script(runtime_seconds=5.0, exit_code=137, reason=reason)
    arn = offered.run_one("g5-spot")

    task = offered.wait_for(arn, "STOPPED")

    assert (task["containers"][0]["exitCode"], task["containers"][0]["reason"]) == (137, reason)


def test_an_image_that_cannot_be_pulled_fails_the_start(offered: SimulatedRegion) -> None:
    offered.simulator.lifecycle.unpullable_images.add("trainer:1")
    arn = offered.run_one("g5-spot")

    task = offered.wait_for(arn, "STOPPED")

    assert task["stopCode"] == "TaskFailedToStart"
    assert task["containers"][0]["reason"].startswith("CannotPullContainerError")
    assert "startedAt" not in task


@pytest.mark.parametrize(
    ("error", "stopped_reason"),
    [
        ("ResourceInitializationError: no such secret", "ResourceInitializationError: no such secret"),
        ("CannotStartContainerError: driver not loaded", "Task failed to start"),
    ],
)
def test_an_error_of_the_agent_fails_the_start_of_the_tasks_that_have_it(
    offered: SimulatedRegion, error: str, stopped_reason: str
) -> None:
    offered.simulator.lifecycle.start_error_of = lambda task: error if task.started_by == "bad" else ""
    bad, good = offered.run_one("g5-spot", startedBy="bad"), offered.run_one("g5-spot", startedBy="good")

    task = offered.wait_for(bad, "STOPPED")
    assert (task["stopCode"], task["stoppedReason"]) == ("TaskFailedToStart", stopped_reason)
    assert task["containers"][0]["reason"] == error
    offered.wait_for(good, "RUNNING")


def test_a_command_that_cannot_be_started_fails_the_start_and_ends_the_others(region: SimulatedRegion) -> None:
    region.provider()
    region.register("train", container(), container(name="bad"))
    region.script = lambda spec: Script(None, start_error="no such file" if spec.container == "bad" else None)
    arn = region.run_one("g5-spot")

    task = region.wait_for(arn, "STOPPED")

    main, bad = task["containers"]
    assert task["stopCode"] == "TaskFailedToStart"
    assert (main["exitCode"], bad.get("exitCode")) == (137, None)
    assert bad["reason"] == "CannotStartContainerError: Error response from daemon: no such file"


def test_a_stopped_task_is_visible_for_an_hour(offered: SimulatedRegion) -> None:
    arn = offered.run_one("g5-spot", startedBy="j")
    offered.wait_for(arn, "STOPPED")

    offered.clock.advance(3_599)
    assert offered.ecs.list_tasks(cluster="c", startedBy="j", desiredStatus="STOPPED")["taskArns"] == [arn]
    offered.clock.advance(2)

    answer = offered.ecs.describe_tasks(cluster="c", tasks=[arn])
    assert (answer["tasks"], answer["failures"]) == ([], [{"arn": arn, "reason": "MISSING"}])
    assert offered.ecs.list_tasks(cluster="c", startedBy="j", desiredStatus="STOPPED")["taskArns"] == []
    with pytest.raises(ClientError, match="not found"):
        offered.ecs.stop_task(cluster="c", task=arn)


def test_a_list_holds_running_tasks_unless_others_are_asked_for(offered: SimulatedRegion) -> None:
    offered.register("other")
    first, second = offered.run_one("g5-spot", startedBy="a"), offered.run_one("g5-spot", startedBy="b")
    third = offered.run_one("g5-spot", taskDefinition="other")
    offered.ecs.stop_task(cluster="c", task=second)

    assert offered.ecs.list_tasks(cluster="c")["taskArns"] == [first, third]
    assert offered.ecs.list_tasks(cluster="c", desiredStatus="STOPPED")["taskArns"] == [second]
    assert offered.ecs.list_tasks(cluster="c", desiredStatus="PENDING")["taskArns"] == []
    assert offered.ecs.list_tasks(cluster="c", startedBy="a")["taskArns"] == [first]
    assert offered.ecs.list_tasks(cluster="c", family="other")["taskArns"] == [third]
    page = offered.ecs.list_tasks(cluster="c", maxResults=1)
    assert offered.ecs.list_tasks(cluster="c", maxResults=1, nextToken=page["nextToken"])["taskArns"] == [third]


def test_a_disconnected_agent_reports_later_and_stops_later(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance()
    arn = region.run_one()
    region.wait_for(arn, "RUNNING")

    region.simulator.set_agent(instance_id, connected=False)
    region.clock.advance(1_000)
    assert region.task(arn)["lastStatus"] == "RUNNING"
    assert region.task(arn)["connectivity"] == "DISCONNECTED"
    reported_at = region.clock.now()
    region.simulator.set_agent(instance_id, connected=True)

    stopped = region.wait_for(arn, "STOPPED")
    assert stopped["containers"][0]["exitCode"] == 0
    assert stopped["executionStoppedAt"] < reported_at <= stopped["stoppingAt"]


def test_a_stop_reaches_a_disconnected_agent_when_it_comes_back(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance()
    region.script = lambda _spec: Script(runtime_seconds=None)
    arn = region.run_one()
    region.wait_for(arn, "RUNNING")
    region.simulator.set_agent(instance_id, connected=False)

    region.ecs.stop_task(cluster="c", task=arn)
    region.clock.advance(300)
    assert (region.task(arn)["lastStatus"], region.task(arn)["desiredStatus"]) == ("RUNNING", "STOPPED")
    region.simulator.set_agent(instance_id, connected=True)

    assert region.wait_for(arn, "STOPPED")["containers"][0]["exitCode"] == 143


def test_other_delays_hold_from_the_next_timer_on(region: SimulatedRegion) -> None:
    region.register()
    region.instance()
    region.simulator.set_timing(Timing(agent_reaction=0.0, pull=7.0))
    arn = region.run_one()

    task = region.wait_for(arn, "RUNNING")

    assert task["startedAt"] - task["createdAt"] == timedelta(seconds=7)


def test_a_task_that_was_placed_runs_on_after_the_time_it_might_have_waited(offered: SimulatedRegion) -> None:
    offered.script = lambda _spec: Script(runtime_seconds=None)
    arn = offered.run_one("g5-spot")

    offered.clock.advance(7_200)

    assert offered.task(arn)["lastStatus"] == "RUNNING"


def test_nothing_is_left_to_do_for_a_task_that_ended_before_its_stop_timeout(region: SimulatedRegion) -> None:
    region.register()
    region.instance()
    region.script = lambda _spec: Script(runtime_seconds=None)
    arn = region.run_one()
    region.wait_for(arn, "RUNNING")
    region.ecs.stop_task(cluster="c", task=arn)

    region.wait_for(arn, "STOPPED")

    assert region.clock.next_due_at() is None
