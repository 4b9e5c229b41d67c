"""Valid messages beside poison, while calls fail before and after they took effect: each has its effect just once."""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.aws import refusal
from fakes.builders import NOW, make_definition, make_node
from fakes.dependencies import make_dependencies
from fakes.functions import Functions
from fakes.jobs import InMemoryJobs
from fakes.sources import FakeLaunchQueue
from fakes.tasks import FakeTasks
from fakes.webhook import load_event, make_delivery
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchUncertain
from relaunch.core.messages.retries import retry_seconds
from relaunch.ports import TransientError
from relaunch_local.in_memory.stores import InMemoryStores

POISON_EVENTS = {
    "submit_job": ("{", "[]", '{"source": "gitlab"}', '{"source": "github", "event": "push", "payload": {}}'),
    "launch_attempt": ("{", "[]", "{}", '{"job_id": 7}'),
    "observe_task": ("{", "[]", '{"detail-type": "ECS Task State Change", "detail": {}}'),
    "observe_capacity": ("{", "[]", '{"detail-type": "EC2 Spot Instance Interruption Warning", "detail": {}}'),
}
MOST_DELIVERIES = 60
# No message comes back sooner: until then another function may be at work on what was saved.
SOONEST_SECONDS = retry_seconds(timedelta(), 0)
# One batch is at most ten messages, some of which SQS delivers twice.
# Each example is a story of six jobs, and its batch has up to ten messages and 25 calls that may fail.
few = settings(max_examples=25)
CHOICES = st.lists(st.integers(0, 5), min_size=1, max_size=10)
OUTAGES = st.lists(st.sampled_from(["", "", "", "before", "after"]), max_size=25)


class Failing:
    """A port whose calls fail as planned: before or after they take effect."""

    def __init__(self, port: Any, plan: deque[str]) -> None:
        self._port = port
        self._plan = plan

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._port, name)

        def fail_as_planned(*arguments: Any, **named: Any) -> Any:
            outage = self._plan.popleft() if self._plan else ""
            if outage == "before":
                raise TransientError(f"{name}: throttled")
            answer = call(*arguments, **named)
            if outage == "after":
                raise TransientError(f"{name}: no answer")
            return answer

        return fail_as_planned


class Stack:
    """The functions over ports that fail as planned, a queue that delivers again, and six jobs' worth of events."""

    def __init__(self) -> None:
        self.jobs, self.tasks, self.launches = InMemoryJobs(), FakeTasks(), FakeLaunchQueue()
        self.plan: deque[str] = deque()
        triggers = (GithubTrigger("acme/vision", "push"), S3Trigger("acme-datasets"))
        stores = InMemoryStores(self.jobs)
        stores.definitions.save_definition(make_definition(triggers=triggers, max_running_jobs=50))
        deps = make_dependencies(
            **{name: Failing(store, self.plan) for name, store in vars(stores).items()},
            tasks=_FailingTasks(self.tasks, self.plan),
            launches=Failing(self.launches, self.plan),
        )
        self.functions = Functions(deps)

    def deliver(self, function: str, bodies: list[str], outages: list[str]) -> None:
        """Deliver a batch, and what is left of it again, until all of it is gone."""
        self.plan.extend(outages)
        if "before" in outages:
            self.functions.dead_letters.failures.append(refusal("ServiceUnavailable"))
        left = bodies
        for _ in range(MOST_DELIVERIES):
            left = self.functions.deliver(function, *left)
            if not left:
                break
            self.functions.deps.clock.advance(SOONEST_SECONDS)  # type: ignore[attr-defined]
        assert left == []
        self.plan.clear()

    def make_jobs(self) -> list[str]:
        """Let six events start six jobs; return their ids."""
        self.deliver("submit_job", [intake_message(number) for number in range(6)], [])
        return self.job_ids

    def launch_all(self) -> None:
        """Deliver launch requests until there are none."""
        for _ in range(MOST_DELIVERIES):
            requested, self.launches.requested = self.launches.requested, []
            if not requested:
                return
            self.functions.deps.clock.advance(max(delay for _, delay in requested))  # type: ignore[attr-defined]
            self.deliver("launch_attempt", [launch_request(job_id) for job_id, _ in requested], [])
        raise AssertionError("launch requests go on for ever")

    def run_all(self) -> list[str]:
        """Let six jobs be launched; return their tasks."""
        self.make_jobs()
        self.launch_all()
        return sorted(self.tasks.tasks)

    @property
    def job_ids(self) -> list[str]:
        return [summary.job_id for summary in self.jobs.list_jobs(100)[0]]

    def states(self) -> list[JobState]:
        return [self.jobs.job(job_id).state for job_id in self.job_ids]


class _FailingTasks(Failing):
    """RunTask answers with an outcome, whatever happens; one whose answer is lost has placed the task or has not."""

    def launch(self, request: Any) -> Any:
        outage = self._plan.popleft() if self._plan else ""
        if outage == "before":
            return LaunchUncertain("no answer")
        outcome = self._port.launch(request)
        return LaunchUncertain("no answer") if outage == "after" else outcome


def intake_message(number: int) -> str:
    """Even numbers are pushes, odd ones uploads."""
    if number % 2:
        upload = load_event("aws.s3.object-created")
        upload["detail"]["object"].update({"key": f"images/{number}", "sequencer": f"0{number}"})
        return json.dumps(upload)
    payload = {**load_event("github.push"), "after": f"{number + 1:040x}"}
    return json.dumps(make_delivery("push", payload, f"guid-{number}"))


def launch_request(job_id: str) -> str:
    return json.dumps({"job_id": job_id})


def deliver_with_poison(stack: Stack, data: st.DataObject, function: str, valid: list[str], outages: list[str]) -> None:
    """Deliver a batch of valid messages, some of them twice, with poison between them; the poison alone is buried."""
    dead_letters = data.draw(st.lists(st.sampled_from(POISON_EVENTS[function]), max_size=4))
    stack.deliver(function, data.draw(st.permutations([*valid, *dead_letters])), outages)

    letters = stack.functions.dead_letters.letters
    assert {letter.body for letter in letters} == set(dead_letters)
    assert all(letter.attributes["reason"] for letter in letters)


@few
@given(st.data(), CHOICES, OUTAGES)
def test_every_event_becomes_one_job(data: st.DataObject, numbers: list[int], outages: list[str]) -> None:
    stack = Stack()

    deliver_with_poison(stack, data, "submit_job", [intake_message(number) for number in numbers], outages)

    assert len(stack.job_ids) == len(set(numbers))
    assert {job_id for job_id, _ in stack.launches.requested} == set(stack.job_ids)


@few
@given(st.data(), CHOICES, OUTAGES)
def test_every_launch_request_becomes_one_task(data: st.DataObject, numbers: list[int], outages: list[str]) -> None:
    stack = Stack()
    ids = stack.make_jobs()
    stack.launches.requested.clear()

    deliver_with_poison(stack, data, "launch_attempt", [launch_request(ids[number]) for number in numbers], outages)
    stack.launch_all()

    wanted = {ids[number] for number in numbers}
    assert sorted(str(task.owner) for task in stack.tasks.tasks.values()) == sorted(f"{each}/1" for each in wanted)
    assert {job_id for job_id in ids if stack.jobs.job(job_id).state is JobState.LAUNCHING} == wanted


@few
@given(st.data(), CHOICES, OUTAGES)
def test_every_task_state_change_is_taken_down_once(
    data: st.DataObject, numbers: list[int], outages: list[str]
) -> None:
    stack = Stack()
    arns = stack.run_all()
    machine = make_node()
    running = {number: stack.tasks.run(arns[number], machine) for number in set(numbers)}

    deliver_with_poison(stack, data, "observe_task", [_state_change(running[number]) for number in numbers], outages)

    assert stack.states().count(JobState.RUNNING) == len(running)
    for seen in running.values():
        assert stack.jobs.events_of(seen.owner.job_id).count("running") == 1


def _state_change(seen: Any) -> str:
    detail = {
        "taskArn": seen.task_id,
        "startedBy": str(seen.owner),
        "lastStatus": seen.status,
        "desiredStatus": "RUNNING",
        "version": seen.version,
        "containerInstanceArn": seen.node,
        "startedAt": NOW.isoformat(),
    }
    return json.dumps({"source": "aws.ecs", "detail-type": "ECS Task State Change", "detail": detail})


@few
@given(st.data(), CHOICES, OUTAGES)
def test_every_warned_machine_has_its_task_stopped(data: st.DataObject, numbers: list[int], outages: list[str]) -> None:
    stack = Stack()
    for number, arn in enumerate(stack.run_all()):
        machine = replace(make_node(name=f"machine-{number}"), instance_id=f"i-{number}")
        stack.deliver("observe_task", [_state_change(stack.tasks.run(arn, machine))], [])

    deliver_with_poison(stack, data, "observe_capacity", [_warning(f"i-{number}") for number in numbers], outages)

    assert stack.states().count(JobState.STOPPING) == len(set(numbers))
    stopped = {arn for arn, _ in stack.tasks.stops}
    assert {stack.tasks.instances[str(stack.tasks.tasks[arn].node)].instance_id for arn in stopped} == {
        f"i-{number}" for number in numbers
    }


def _warning(instance_id: str) -> str:
    warning = load_event("aws.ec2.spot-interruption-warning")
    return json.dumps({**warning, "detail": {**warning["detail"], "instance-id": instance_id}})
