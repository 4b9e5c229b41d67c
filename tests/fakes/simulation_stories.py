"""Scenarios of a few jobs without faults, except for the one function that is killed in them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import GithubTrigger, ImageWait, JobDefinition, S3Trigger
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.ports import CapacityProviderOffer
from relaunch.usecases.cancel_job import cancel_job
from relaunch_local.ecs import SpotPrice, Timing
from relaunch_local.simulation import Options
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import BUCKET, IMAGES, PlannedEvent, Scenario

PROVIDERS = (
    CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT),
    CapacityProviderOffer("g6-spot", "g6.xlarge", PurchaseOption.SPOT),
)
PRICES = [SpotPrice("g5.xlarge", "us-east-1a", 0.40), SpotPrice("g6.xlarge", "us-east-1a", 0.45)]
SHA = "5e07" * 10
# Both kinds say that the instance was lost; which one is recorded depends on the order of events.
_LOST = {StopKind.INTERRUPTION, StopKind.HOST_LOST}


@dataclass(frozen=True)
class Story:
    """What is trained, which events start it, and an action that happens once, as soon as its condition holds."""

    name: str
    events: tuple[PlannedEvent, ...] = (PlannedEvent(1.0, "push", "resnet", SHA),)
    recipe: Recipe = field(default_factory=lambda: Recipe(200.0, 60.0))
    definition: dict[str, Any] = field(default_factory=dict)
    capacity: dict[str, int | None] = field(default_factory=dict)
    action: tuple[Callable[[SeedRun], bool], Callable[[SeedRun], None]] | None = None

    def scenario(self) -> Scenario:
        definition = JobDefinition(
            name="resnet",
            task_definition="trainer",
            accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=8 * 1024)),
            triggers=(
                GithubTrigger("acme/resnet", "push", branches=("main",)),
                S3Trigger(BUCKET, prefix="resnet/", suffix=".manifest"),
            ),
            environment={"RECIPE": "resnet"},
            purchase=PurchasePolicy.SPOT,
            checkpoint_uri="s3://acme-checkpoints/resnet/",
        )
        return Scenario(
            intensity=0.0,
            chaos_seconds=1_000.0,
            providers=PROVIDERS,
            capacity={each.name: self.capacity.get(each.name) for each in PROVIDERS},
            definitions=(replace(definition, **self.definition),),
            recipes={"resnet": self.recipe},
            events=self.events,
            limits=StackLimits(),
            timing=Timing(scale_out=10.0, boot=10.0, registration=5.0, pull=5.0),
            provisioning_quota=500,
            spot_prices=list(PRICES),
        )


@dataclass(frozen=True)
class Ending:
    """The end of a run: of each job its state and counters, and how its tasks stopped."""

    jobs: tuple[tuple[str, str, int, int, tuple[str, ...]], ...]
    violations: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A step of a function: which invocation, what it does, and the jobs as they are then, with pending effects."""

    invocation: str
    doing: str
    jobs: tuple[tuple[str, bool, bool, bool], ...]
    """Of each its state, and whether it was warned, was interrupted and has failed."""
    pending: tuple[str, ...]


def run_story(story: Story, kill_at_step: int = 0) -> tuple[Ending, tuple[Step, ...]]:
    """Run a story; return its ending, and every step that its functions took until nothing was left to do.

    Of a story with a kill the steps are not noted.
    """
    steps: list[Step] = []

    def is_killed_at(step: str) -> bool:
        if kill_at_step == 0 and run.steps_until_idle == 0:
            steps.append(step_in(run, step))
        return run.account.runtime.steps == kill_at_step

    options = Options(without_faults=True, scenario=story.scenario(), is_killed_at=is_killed_at)
    run = SeedRun(7, options)
    if story.action is not None:
        do_once(run, *story.action)
    result = run.run()
    invariants = run.account.invariants
    jobs = tuple(
        (
            job.job_id,
            str(job.state),
            job.totals.failures,
            job.totals.interruptions,
            tuple("lost" if stop.kind in _LOST else str(stop.kind) for stop in invariants.stops[job.job_id].values()),
        )
        for job in sorted(invariants.jobs.values(), key=lambda job: job.job_id)
    )
    return Ending(jobs, result.violations), tuple(steps)


def step_in(run: SeedRun, step: str) -> Step:
    """Return a step that is taken now."""
    jobs = [job for _, job in sorted(run.account.invariants.jobs.items())]
    pending = sorted({type(effect).__name__ for job in jobs for effect in job.pending})
    invocation, _, doing = step.partition(": ")
    return Step(invocation, doing, tuple(map(_situation, jobs)), tuple(pending))


def _situation(job: Job) -> tuple[str, bool, bool, bool]:
    is_warned = job.attempt is not None and job.attempt.warned_at is not None
    return str(job.state), is_warned, job.totals.interruptions > 0, job.totals.failures > 0


def do_once(run: SeedRun, is_possible: Callable[[SeedRun], bool], action: Callable[[SeedRun], None]) -> None:
    """Perform an action once it is possible, checked every second."""
    if is_possible(run):
        action(run)
    else:
        run.account.clock.call_later(1.0, lambda: do_once(run, is_possible, action))


def has_trained(run: SeedRun) -> bool:
    """Return whether a job has been RUNNING for a while."""
    now = run.account.clock.now()
    jobs = run.account.invariants.jobs.values()
    started = [job.attempt.started_at for job in jobs if job.attempt and job.state is JobState.RUNNING]
    return any(at is not None and now - at > timedelta(seconds=90) for at in started)


def has_task(run: SeedRun) -> bool:
    """Return whether a job knows its task."""
    return any(job.attempt and job.attempt.task_id for job in run.account.invariants.jobs.values())


def busy_machine(run: SeedRun) -> Any:
    """Return an instance with a task on it."""
    return next(instance for instance in run.account.simulator.instances.by_id.values() if instance.tasks)


def interrupt(run: SeedRun) -> None:
    run.account.simulator.instances.interrupt(busy_machine(run))


def lose(run: SeedRun) -> None:
    run.account.simulator.instances.terminate(busy_machine(run))


def cancel(run: SeedRun) -> None:
    """Cancel the only job, with retries until there is an answer."""
    account = run.account
    (job_id,) = account.invariants.jobs
    run.workload.cancelled.add(job_id)

    def on_end(_answer: object, error: BaseException | None) -> None:
        if error is not None:
            account.clock.call_later(1.0, lambda: cancel(run))

    account.lambdas.call("job_api", lambda: cancel_job(job_id, "not needed", account.deps), on_end)


STORIES = (
    Story("a push trains and succeeds"),
    Story("a warned instance is left in time and the training resumes elsewhere", action=(has_trained, interrupt)),
    Story("an instance is lost without a warning", action=(has_trained, lose)),
    Story("a job is cancelled while it runs", action=(has_trained, cancel)),
    Story("a job is cancelled while its task waits for an instance", action=(has_task, cancel)),
    Story(
        "a program fails more often than it may",
        recipe=Recipe(200.0, 60.0, failures=9, failure_after_seconds=20.0),
        definition={"max_failures": 1},
    ),
    Story(
        "a program runs out of time",
        recipe=Recipe(9_000.0, 60.0),
        definition={"max_runtime": timedelta(minutes=12)},
    ),
    Story(
        "two uploads share one slot",
        events=(PlannedEvent(1.0, "upload", "resnet", "upload-01"), PlannedEvent(1.5, "upload", "resnet", "upload-02")),
        definition={"max_running_jobs": 1},
    ),
    Story(
        "a push waits for its commit's image",
        events=(PlannedEvent(1.0, "push", "resnet", SHA, image_after_seconds=40.0),),
        definition={
            "triggers": (GithubTrigger("acme/resnet", "push", branches=("main",), wait_for_image=ImageWait(IMAGES)),)
        },
    ),
    Story("the first offering has no instance", capacity={"g5-spot": 0}),
    Story("a caller asks for a job", events=(PlannedEvent(1.0, "request", "resnet", "request-01"),)),
)
