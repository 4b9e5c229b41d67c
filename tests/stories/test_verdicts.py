"""How a job ends depends on what ended its program, and not on who told of it first."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from fakes.builders import make_definition
from fakes.story import MINUTE, Story, machine
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.core.launches.launch import HostObservation
from relaunch.entrypoints import task_changes
from relaunch.ports import NotYetError, TransientError
from relaunch.usecases.observe_capacity import observe_capacity

ENDED = {"stop_code": "EssentialContainerExited", "stopped_reason": "Essential container in task exited"}
CODES = {"main": 0, "side": 139}


def launched_with_sidecar() -> tuple[Story, str]:
    story = Story(make_definition(max_failures=1))
    story.run_images("trainer:1", "router:1")
    (revision,) = story.revisions.active
    containers = tuple(replace(each, is_essential=True) for each in revision.containers)
    story.revisions.active[:] = [replace(revision, containers=containers)]
    return story, story.launch()


def tell_end_of(story: Story, job_id: str, **statuses: str) -> None:
    """Let one container end while the other one runs, and tell it."""
    story.tell(story.tasks.change(story.arn(job_id), desired_status="STOPPED", container_statuses=statuses, **ENDED))


@pytest.mark.parametrize("exit_code", [139, 0])
def test_a_training_that_saves_because_its_sidecar_died_is_launched_again(exit_code: int) -> None:
    story, job_id = launched_with_sidecar()

    tell_end_of(story, job_id, main="RUNNING", side="STOPPED")
    story.end(job_id, container_exit_codes={"main": 0, "side": exit_code})

    job = story.job(job_id)
    assert (job.state, job.totals.failures) == (JobState.WAITING, 1)
    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.kind is StopKind.SIDECAR
    assert f"side (exit code {exit_code}) ended before main did" in job.reason


def test_a_sidecar_that_fails_once_the_training_has_ended_is_harmless() -> None:
    story, job_id = launched_with_sidecar()

    tell_end_of(story, job_id, main="STOPPED", side="RUNNING")
    story.end(job_id, container_exit_codes=CODES)

    assert story.job(job_id).state is JobState.SUCCEEDED


def test_a_sidecar_that_failed_at_no_known_time_is_no_success() -> None:
    story, job_id = launched_with_sidecar()

    story.end(job_id, container_exit_codes=CODES)

    assert story.job(job_id).state is JobState.WAITING
    assert "nothing tells whether before main" in story.job(job_id).reason


def test_the_order_is_known_though_its_event_comes_late() -> None:
    story, job_id = launched_with_sidecar()
    arn = story.arn(job_id)

    late = story.tasks.change(
        arn, desired_status="STOPPED", container_statuses={"main": "RUNNING", "side": "STOPPED"}, **ENDED
    )
    story.tell(
        story.tasks.change(arn, last_status="DEPROVISIONING", container_statuses=dict.fromkeys(CODES, "STOPPED"))
    )
    story.tell(late)
    story.end(job_id, container_exit_codes={"main": 0, "side": 0})

    assert story.job(job_id).state is JobState.WAITING


ENDING = InstanceEvent(InstanceEventKind.STATE_CHANGE, machine().instance_id, "shutting-down")
WARNING = InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, machine().instance_id)
SECOND = timedelta(seconds=1)


ORDERS = [(0, 1), (1, 0), (0, 1, 0, 1), (1, 0, 1), (0,)]
"""In which order what happened is told: 0 is the end of the task, 1 the notice. The last one is never told."""


def end_in_order(
    order: tuple[int, ...], exit_code: int, notices: dict[InstanceEvent, int], *, is_located: bool = True
) -> StopKind | None:
    """Let a program exit, and tell that and the notices, which are of so many seconds after it, in this order.

    Whoever asks EC2 is told of the notices that it has given until then. `is_located`: the events of its start were not
    lost.
    """
    story = Story(make_definition(max_failures=0))
    job_id = story.launch() if is_located else story.submit_and_deliver()
    if not is_located:
        story.tasks.run(story.arn(job_id), machine(), started_at=story.now)
    story.clock.advance(300)
    exited_at = story.now
    happened: list[Callable[[], object]] = [lambda: story.end(job_id, exit_code, stopped_at=exited_at, **ENDED)]
    given = {notice: exited_at + seconds * SECOND for notice, seconds in notices.items()}
    for notice, at in given.items():
        told = replace(notice, at=at)
        happened.append(lambda told=told: observe_capacity(told, story.deps))  # type: ignore[misc]

    def tell_who_asks() -> None:
        known = {notice: at for notice, at in given.items() if at <= story.now}
        ended_at = known.get(ENDING)
        story.hosts.seen[machine().instance_id] = HostObservation(
            has_ended=ended_at is not None,
            ended_at=ended_at,
            warnings=frozenset({known[WARNING]} if WARNING in known else ()),
        )

    # Late enough for the notices of the next seconds to have been given, or not.
    story.clock.advance(1 if 0 in order[:1] else 9)
    for index in order:
        tell_who_asks()
        if story.attempt(job_id).stop is None:
            happened[index]()
        story.clock.advance(1)
    for _ in range(5):
        story.clock.advance(60)
        tell_who_asks()
        story.reconcile()
    stop = story.attempt(job_id).stop
    return stop.kind if stop else None


@pytest.mark.parametrize("exit_code", [143, 137, 1, 0])
@pytest.mark.parametrize(
    ("notices", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({ENDING: 2}, StopKind.HOST_LOST, id="its machine ends two seconds later"),
        pytest.param({ENDING: 9}, StopKind.HOST_LOST, id="its machine ends nine seconds later"),
        pytest.param({ENDING: -5}, StopKind.HOST_LOST, id="its machine ended before"),
        pytest.param({ENDING: 70}, None, id="its machine ends a minute later"),
        pytest.param({WARNING: 2}, StopKind.INTERRUPTION, id="a warning two seconds later"),
        pytest.param({WARNING: -30}, StopKind.INTERRUPTION, id="a warning half a minute before"),
        pytest.param({WARNING: 60}, None, id="a warning a minute later"),
    ],
)
def test_the_order_of_events_that_nobody_orders_changes_no_verdict(
    exit_code: int, notices: dict[InstanceEvent, int], expected: StopKind | None
) -> None:
    orders = [tuple(each for each in order if each <= len(notices)) for order in ORDERS]
    # A program that saves on a notice exits with 0, or by the signal.
    is_its_own = expected is None or (exit_code == 1 and WARNING in notices)
    by_itself = StopKind.USER_ERROR if exit_code else StopKind.SUCCESS

    kinds = {end_in_order(order, exit_code, notices) for order in orders}

    assert kinds == {by_itself if is_its_own else expected}


@pytest.mark.parametrize(
    ("notices", "expected"),
    [({}, StopKind.SUCCESS), ({ENDING: 9}, StopKind.HOST_LOST), ({ENDING: -5}, StopKind.HOST_LOST)],
)
def test_nor_does_it_where_the_events_of_the_start_were_lost(
    notices: dict[InstanceEvent, int], expected: StopKind
) -> None:
    orders = [tuple(each for each in order if each <= len(notices)) for order in ORDERS]

    assert {end_in_order(order, 0, notices, is_located=False) for order in orders} == {expected}


def test_the_verdict_waits_a_minute_and_says_so() -> None:
    story = Story(make_definition(max_failures=0))
    job_id = story.launch()

    stopped = story.end(job_id, 143)
    assert story.job(job_id).state is JobState.STOPPING
    assert "away is found out within a minute" in story.job(job_id).reason

    before = story.timeline(job_id)
    story.tell(stopped)
    assert story.timeline(job_id) == before

    story.reconcile(after=MINUTE)
    assert story.job(job_id).state is JobState.FAILED


def test_the_end_of_a_task_is_received_again_when_its_verdict_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    job_id = story.launch()
    story.clock.advance(300)
    stopped = story.tasks.end(story.arn(job_id), 0, stopped_at=story.now, **ENDED)
    monkeypatch.setattr(task_changes, "parse_ecs_event", lambda _event: stopped)
    story.clock.advance(2)

    with pytest.raises(NotYetError) as early:
        task_changes.handle_message("{}", story.deps)
    assert early.value.seconds == 8
    assert story.hosts.asked == [], "it is too early to ask"

    story.clock.advance(8)
    task_changes.handle_message("{}", story.deps)

    assert story.job(job_id).state is JobState.SUCCEEDED
    assert story.hosts.asked == [machine().instance_id]
    task_changes.handle_message("{}", story.deps)


def test_an_ec2_that_does_not_answer_is_asked_again_and_given_up_after_a_minute() -> None:
    story = Story()
    job_id = story.launch()
    story.clock.advance(300)
    story.hosts.failure = TransientError("RequestLimitExceeded")
    story.end(job_id, 0)
    assert story.job(job_id).state is JobState.STOPPING

    story.hosts.failure = TransientError("RequestLimitExceeded")
    story.reconcile(after=MINUTE)

    assert story.job(job_id).state is JobState.SUCCEEDED
    assert "host not looked at" in story.log.decisions


def test_a_warning_and_an_end_cost_no_failure_in_any_order() -> None:
    kinds = {end_in_order(order, 143, {WARNING: 2, ENDING: 5}) for order in permutations(range(3))}

    # Which of the two it is called depends on whether the warning was known; neither counts as a failure.
    assert kinds <= {StopKind.INTERRUPTION, StopKind.HOST_LOST}


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_host_that_ends_both_containers_is_no_sidecar_that_failed(*, is_told_first: bool) -> None:
    story, job_id = launched_with_sidecar()
    ending = replace(ENDING, at=story.now)

    if is_told_first:
        observe_capacity(ending, story.deps)
    story.end(job_id, container_exit_codes={"main": 143, "side": 1})
    if not is_told_first:
        observe_capacity(ending, story.deps)
    story.reconcile(after=MINUTE)

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert stop.kind is StopKind.HOST_LOST
