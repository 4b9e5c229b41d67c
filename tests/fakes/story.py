"""A world of fakes in which a test lets things happen, one line each."""

from datetime import datetime, timedelta
from typing import Any

from fakes.builders import container_instance_arn, make_container, make_definition, make_node, make_revision
from fakes.clock import FakeClock
from fakes.dependencies import make_dependencies
from fakes.jobs import InMemoryJobs
from fakes.metrics import ListMetrics
from fakes.registry import FakeRegistry
from fakes.sources import (
    FakeCheckpoints,
    FakeHosts,
    FakeImages,
    FakeJobEvents,
    FakeLaunchQueue,
    FakeOfferings,
    FakeRevisions,
    ListLog,
)
from fakes.tasks import FakeTasks
from relaunch.core.definitions.definition import GithubTrigger, ImageWait, JobDefinition
from relaunch.core.jobs.attempt import Attempt, AttemptKey
from relaunch.core.jobs.job import Job
from relaunch.core.launches.derived_revision import TaskDefinition
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.core.launches.launch import LaunchUncertain, Node, TaskObservation
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch.core.triggers.events import DirectRequest, GithubEvent, ImagePushed, ObjectCreated, Push
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_task import observe_task
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.submit_job import submit_event

SHA = "5e07" * 10
OTHER_SHA = "b" * 40
MINUTE = timedelta(minutes=1)
WAITS_FOR_IMAGE = make_definition(triggers=(GithubTrigger("acme/vision", "push", wait_for_image=ImageWait("trainer")),))
HOME = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
OTHER = "999900001111.dkr.ecr.us-east-1.amazonaws.com"
DIGEST = "sha256:" + "5e" * 32


def push(sha: str = SHA, repository: str = "acme/vision") -> GithubEvent:
    """Build a push to main."""
    identity = f"github:push:{repository}:{sha}"
    return Push(identity=identity, repository=repository, ref="refs/heads/main", sha=sha, sender="ada")


def upload(key: str = "images/1.manifest", bucket: str = "acme-datasets") -> ObjectCreated:
    """Build an upload."""
    return ObjectCreated(f"s3:{bucket}:{key}", bucket, key, size_bytes=9)


def image(tag: str = SHA, repository: str = "trainer") -> ImagePushed:
    """Build an image's push."""
    return ImagePushed(f"ecr:{repository}:{tag}", repository, tag, "sha256:9")


def machine(number: int = 1, instance_type: str = "g5.xlarge") -> Node:
    """Build one of several machines."""
    arn = container_instance_arn(number)
    return make_node(name=arn, instance_id=f"i-{number:017x}", instance_type=instance_type)


class Story:
    """The fakes, typed, and what can happen."""

    def __init__(self, *definitions: JobDefinition, **ports: Any) -> None:
        self.jobs: InMemoryJobs = ports.pop("jobs", None) or InMemoryJobs()
        self.tasks = FakeTasks()
        self.clock = FakeClock()
        self.launches = FakeLaunchQueue()
        self.job_events = FakeJobEvents()
        self.revisions = FakeRevisions()
        self.offerings = FakeOfferings()
        self.images = FakeImages()
        self.hosts = FakeHosts()
        self.checkpoints = FakeCheckpoints()
        self.registry = FakeRegistry()
        self.log = ListLog()
        self.metrics = ListMetrics()
        self.deps = make_dependencies(**{**vars(self), **ports})
        for definition in definitions or (make_definition(),):
            self.deps.definitions.save_definition(definition)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def run_images(self, *names: str) -> None:
        """Let the newest revision have containers with these images; the first is `main`."""
        containers = tuple(
            make_container(name=name, image=image_name, gpu_count=int(name == "main"), memory_mib=512, vcpus=0.5)
            for name, image_name in zip(("main", "side", "third"), names, strict=False)
        )
        revision = make_revision(containers=containers)
        self.revisions.active[:] = [revision]
        described = [{"name": each.name, "image": each.image, "stopTimeout": 90} for each in containers]
        self.registry.sources[revision.arn] = TaskDefinition("trainer", {"containerDefinitions": described})

    def submit(self, event: GithubEvent | ObjectCreated | ImagePushed | DirectRequest | None = None) -> str:
        """Let an event start the one job it starts; return its id."""
        (submission,) = submit_event(event or push(), self.deps)
        assert submission.job is not None, submission.note
        return submission.job.job_id

    def job(self, job_id: str) -> Job:
        return self.jobs.job(job_id)

    def attempt(self, job_id: str) -> Attempt:
        return self.job(job_id).current_attempt

    def timeline(self, job_id: str) -> str:
        """Return the job's timeline, a line per entry."""
        history = self.jobs.load_history(job_id)
        assert history is not None
        return "\n".join(f"{entry.event}: {entry.detail}" for entry in history.timeline)

    def arn(self, job_id: str) -> str:
        """Return the ARN of the job's current task."""
        arn = self.attempt(job_id).task_id
        assert arn is not None
        return arn

    @property
    def launched_placements(self) -> list[tuple[AttemptKey, int]]:
        """Return the placements that were launched, as often as they were."""
        return [(request.attempt, request.placement_number) for request in self.tasks.requests]

    def launched_definition(self, number: int = -1) -> TaskDefinition:
        """Return the task definition that a call of RunTask named."""
        return self.registry.load_definition(self.tasks.requests[number].revision_arn)

    def deliver(self) -> int:
        """Deliver the launch requests that are queued now, once their delay has passed; return their number."""
        requested, self.launches.requested = self.launches.requested, []
        self.clock.advance(max((delay for _, delay in requested), default=0))
        for job_id, _ in requested:
            launch_attempt(job_id, self.deps)
        return len(requested)

    def launch_unanswered(self, *, takes_effect: bool) -> str:
        """Submit a job and lose the answer to its RunTask; return its id."""
        self.tasks.outcomes.append(LaunchUncertain("no answer to RunTask: read timed out"))
        self.tasks.places_uncertain = takes_effect
        return self.submit_and_deliver()

    def settle(self) -> None:
        """Deliver launch requests until there are none left."""
        for _ in range(50):
            if not self.deliver():
                return
        raise AssertionError(f"launch requests go on for ever: {self.launches.requested[:5]}")

    def submit_and_deliver(self, event: GithubEvent | ObjectCreated | ImagePushed | DirectRequest | None = None) -> str:
        """Let an event start the one job it starts, and look once for where to launch it; return its id."""
        job_id = self.submit(event)
        self.deliver()
        return job_id

    def tell(self, observation: TaskObservation) -> Job | None:
        """Deliver a task state change."""
        return observe_task(observation, self.deps)

    def run(self, job_id: str, on: Node | None = None) -> None:
        """Let the job's task run, and tell it."""
        self.tell(self.tasks.run(self.arn(job_id), on or machine(), started_at=self.now))

    def launch(self, event: GithubEvent | ObjectCreated | DirectRequest | None = None) -> str:
        """Let an event start a job and its task run; return its id."""
        job_id = self.submit_and_deliver(event)
        self.run(job_id)
        return job_id

    def end(self, job_id: str, exit_code: int | None = 0, **fields: Any) -> TaskObservation:
        """Let the job's task be STOPPED, and tell it.

        Without another time its program ended so long ago that nothing which EC2 says from now on is its cause.
        """
        times = {} if "stopped_at" in fields else {"execution_stopped_at": self.now - NOTICE_LEAD}
        stopped = self.tasks.end(self.arn(job_id), exit_code, **{"stopped_at": self.now, **times, **fields})
        self.tell(stopped)
        return stopped

    def lose_host(self, job_id: str, **fields: Any) -> None:
        """Let the job's machine be gone without a word."""
        reason = "Host EC2 (instance i-1) terminated."
        self.end(job_id, None, stop_code="TerminationNotice", stopped_reason=reason, **fields)

    def warn(self, instance_id: str) -> list[Job]:
        """Deliver a spot interruption warning."""
        return observe_capacity(
            InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, instance_id, at=self.now), self.deps
        )

    def change_host(self, instance_id: str, state: str) -> list[Job]:
        """Deliver a state change of an EC2 instance."""
        return observe_capacity(InstanceEvent(InstanceEventKind.STATE_CHANGE, instance_id, state, self.now), self.deps)

    def reconcile(self, after: timedelta = timedelta(0)) -> int:
        """Let time pass and look at what is due."""
        self.clock.advance(after)
        return reconcile_jobs(self.deps)
