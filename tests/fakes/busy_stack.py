"""A world in which every sample of events/ means something: definitions that watch, and a job on their machine."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from fakes.builders import (
    make_definition,
    make_node,
    make_placement,
    make_running_attempt,
    make_running_job,
    make_timeline_entry,
)
from fakes.clock import FakeClock
from fakes.dependencies import make_dependencies
from fakes.functions import TOPIC, Functions
from fakes.jobs import InMemoryJobs
from fakes.sources import FakeJobEvents
from fakes.tasks import FakeTasks
from fakes.webhook import EVENTS, load_event, make_delivery
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    InputRule,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
)
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.lifecycle.decision import Decision
from relaunch.entrypoints.consumers import CONSUMERS

# When the samples of events/ were sent: the task began to run at 11:03, and its machine was taken away at 12:41.
ACCEPTED_AT = datetime(2026, 11, 3, 11, 0, tzinfo=UTC)
STARTED_AT = ACCEPTED_AT + timedelta(minutes=3)
NOW = ACCEPTED_AT + timedelta(hours=1, minutes=45)
GITHUB_EVENTS = ("push", "workflow_dispatch", "repository_dispatch", "release", "package")
JOB_ID = "resnet-1f2e3d4c"
TASK_ARN = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/5f1c0e9a7b3d4c21a8e6f0d2b4c69713"
FEATURES_BUILT = '{"detail-type":["Features Built"],"source":["com.acme.features"]}'
MACHINE = make_node(
    name="arn:aws:ecs:us-east-1:111122223333:container-instance/relaunch/0c9f3a6e2d7b4418b5a1e8c7f6d30219",
    instance_id="i-0a1b2c3d4e5f60718",
)


class BusyStack:
    """The functions over such a world, and what is in it."""

    def __init__(self) -> None:
        self.jobs = InMemoryJobs()
        self.tasks = FakeTasks()
        self.job_events = FakeJobEvents()
        triggers: tuple[Trigger, ...] = (
            *(GithubTrigger("acme/vision", event) for event in GITHUB_EVENTS),
            GithubTrigger("acme/vision", "push", tags=("*",)),
            GithubTrigger("acme/vision", "workflow_run", workflows=("Build image",)),
            S3Trigger("acme-datasets"),
            ImageTrigger("trainer"),
            ScheduleTrigger("cron(45 13 ? * TUE *)", "Europe/Berlin", catches_up=True),
            EventBridgeTrigger(FEATURES_BUILT, (("learning_rate", "detail.learning_rate"),)),
            SnsTrigger(TOPIC, (("learning_rate", "message.learning_rate"),)),
        )
        anything = InputRule("(?s).*", "0.1")
        deps = make_dependencies(jobs=self.jobs, tasks=self.tasks, job_events=self.job_events, clock=FakeClock(NOW))
        deps.definitions.save_definition(
            make_definition(triggers=triggers, inputs=dict.fromkeys(("learning_rate", "dataset", "epochs"), anything))
        )
        self._run_job()
        self.functions = Functions(deps)

    def _run_job(self) -> None:
        placed = make_placement(state=PlacementState.PLACED, task_id=TASK_ARN, requested_at=ACCEPTED_AT)
        attempt = make_running_attempt(
            placement=placed,
            task_version=3,
            node=MACHINE.name,
            instance_id=MACHINE.instance_id,
            started_at=STARTED_AT,
        )
        job = make_running_job(
            JOB_ID, attempt=attempt, accepted_at=ACCEPTED_AT, first_started_at=STARTED_AT, wake_at=NOW
        )
        self.jobs.create_job(job, [make_timeline_entry()])
        self.jobs.save_job(Decision(self.jobs.job(JOB_ID), take_slot_limits=(5, 20), link_instance=True))
        self.tasks.instances[MACHINE.name] = MACHINE
        self.tasks.say(TASK_ARN, "RUNNING", started_by=f"{JOB_ID}/1", version=3, node=MACHINE.name)

    @property
    def started(self) -> list[str]:
        """Return the ids of jobs that events have started."""
        return [summary.job_id for summary in self.jobs.list_jobs(10_000)[0] if summary.job_id != JOB_ID]


def sample_messages(function: str) -> list[Any]:
    """Return the messages that the samples have for a function's queue, as JSON."""
    if function == "submit_job":
        deliveries = [
            make_delivery(name.split(".")[1], load_event(name), name)
            for name in sorted(path.stem for path in EVENTS.glob("github.*.json"))
        ]
        names = ("sqs.intake.eventbridge", "sqs.intake.schedule")
        sent = [json.loads(load_event(name)["Records"][0]["body"]) for name in names]
        others = map(
            load_event,
            ("aws.s3.object-created", "s3.notification", "aws.ecr.image-action", "aws.ecr.replication-action"),
        )
        return [*deliveries, *others, *sent]
    events = {"observe_capacity": "aws.ec2.*.json", "observe_task": "aws.ecs.*.json"}.get(function, "none")
    batches = [load_event(path.stem) for path in sorted(EVENTS.glob(f"sqs.{CONSUMERS[function]}.*.json"))]
    bodies = [json.loads(record["body"]) for batch in batches for record in batch["Records"]]
    return bodies + [load_event(path.stem) for path in sorted(EVENTS.glob(events))]
