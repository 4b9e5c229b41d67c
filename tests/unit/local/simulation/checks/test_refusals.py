"""What the check of refused launches counts, and from when on."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from fakes.builders import make_job
from relaunch.core.jobs.state import Waiting, WaitReason
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.family_pauses import FamilyPauses
from relaunch_local.simulation.checks.refusals import Refusals

JOB = "resnet-1f2e3d4c"
TOO_MANY = "no more machines than probes are bought for a refusal"
STAYS = "a job goes on by its next probe once it may"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass
class World:
    """One job, whose launches are refused by ECS."""

    clock: Clock = field(default_factory=Clock)
    broken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Start with a job that nothing was refused to."""
        self.runtime = Runtime(self.clock, Chance(0, self.clock.now), lambda _line: None)
        self.pauses = FamilyPauses()
        self.job = make_job(job_id=JOB, waiting=Waiting(WaitReason.REFUSED, self.clock.now(), "denied"))
        self.family = self.job.definition.task_definition
        self.refusals = Refusals(
            self.clock, self.runtime, self._check, {JOB: self.job}, lambda _since, _until: timedelta(0)
        )

    def _check(self, name: str, holds: bool, _message: str) -> None:
        if not holds:
            self.broken.add(name)

    def function(self) -> None:
        """Let another function run from now on."""
        self.runtime.current = Invocation(1, "launch_attempt")

    def refuse(self, instance: str) -> None:
        """Refuse RunTask, which the application does not know before it saves the job or has handled its message."""
        constraints = [{"type": "memberOf", "expression": f"ec2InstanceId == {instance}"}]
        self.refusals.refused({"startedBy": f"{JOB}/1", "placementConstraints": constraints})

    def save(self) -> None:
        """Save the job, which waits."""
        waiting = Waiting(WaitReason.REFUSED, self.clock.now(), "denied")
        self.refusals.job_saved(make_job(job_id=JOB, waiting=waiting))


@pytest.fixture
def world() -> World:
    made = World()
    made.function()
    return made


def test_a_second_machine_before_the_first_probe_is_one_too_many(world: World) -> None:
    world.refuse("i-1")
    world.save()
    world.clock.advance(600)
    world.function()
    world.refuse("i-2")
    assert world.broken == {TOO_MANY}


def test_probes_are_counted_from_the_refused_registration_on(world: World) -> None:
    world.refusals.register_refused()
    world.save()
    world.clock.advance(480)
    world.function()
    world.refuse("i-1")
    world.save()
    world.clock.advance(480)
    world.function()
    world.refuse("i-2")
    assert not world.broken


def test_a_registration_that_was_refused_to_another_job_gives_this_one_no_time(world: World) -> None:
    world.refusals.register_refused()
    world.refusals.job_saved(make_job(job_id="other-1f2e3d4c"))
    world.clock.advance(480)
    world.function()
    world.refuse("i-1")
    world.save()
    world.clock.advance(480)
    world.function()
    world.refuse("i-2")
    assert world.broken == {TOO_MANY}


def test_a_refusal_that_dies_with_its_function_is_known_to_nobody(world: World) -> None:
    world.refuse("i-1")
    world.clock.advance(600)
    world.function()
    world.refuse("i-2")
    world.save()
    assert not world.broken
    world.clock.advance(600)
    world.function()
    world.refuse("i-3")
    assert world.broken == {TOO_MANY}


def test_a_refusal_that_a_function_handled_and_did_not_save_counts(world: World) -> None:
    world.refuse("i-1")
    world.refusals.message_handled()
    world.clock.advance(600)
    world.function()
    world.refuse("i-2")
    assert world.broken == {TOO_MANY}


def test_a_job_that_is_granted_its_launch_goes_on_by_its_next_probe(world: World) -> None:
    world.refuse("i-1")
    world.save()
    world.clock.advance(120)
    world.refusals.granted()
    world.clock.advance(43 * 60 - 1)
    assert not world.broken
    world.clock.advance(2)
    assert world.broken == {STAYS}


def test_a_job_whose_family_is_paused_goes_on_when_that_is_over(world: World) -> None:
    world.refuse("i-1")
    world.save()
    for number in range(5):
        world.pauses.note_useless(world.family, f"i-{number}", world.clock.now())
        world.clock.advance(15 * 60)
    world.refusals.granted()
    world.clock.advance(3_600 + 30 * 60 - 1)
    assert not world.broken, "an hour from the last of them, and the time for the next look"
    world.clock.advance(3 * 3_600)
    assert world.broken == {STAYS}


@pytest.mark.parametrize(
    ("apart", "machines", "pause"),
    [
        (HOUR, 2, timedelta(0)),
        (HOUR, 3, 15 * MINUTE),
        (HOUR, 4, HOUR),
        (HOUR, 5, 4 * HOUR),
        (MINUTE, 6, 12 * MINUTE),
        (HOUR, 8, 6 * HOUR),
        (HOUR, 12, 13 * HOUR),
    ],
)
def test_a_family_is_paused_for_longer_with_each_machine(apart: timedelta, machines: int, pause: timedelta) -> None:
    pauses = FamilyPauses()
    at = Clock().now()
    for number in range(machines):
        at += apart
        pauses.note_useless("trainer", f"i-{number}", at)
    assert pauses.until("trainer", at) - at == pause
    pauses.note_useful("trainer")
    assert pauses.until("trainer", at) == at


def test_an_instance_counts_once_for_its_family_and_for_no_other() -> None:
    pauses = FamilyPauses()
    at = Clock().now()
    for number in range(9):
        pauses.note_useless("trainer", f"i-{number % 2}", at + number * MINUTE)
        pauses.note_useless(f"trainer-{number}", "i-9", at)
    assert pauses.until("trainer", at + 9 * MINUTE) == at + 9 * MINUTE
    assert pauses.until("trainer-1", at) == at
