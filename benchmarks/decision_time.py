"""The time from a push at the webhook to the RunTask request, warm and without network.

Real: signature, payload trimming, events, use cases, selection from the bundled catalogue, the codecs of the jobs
table, botocore's signed requests to ECS and SQS. AWS responds at once, in this process; jobs are kept in memory,
encoded and decoded as items each time.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.recording import example_definitions
from benchmarks.session import Session
from benchmarks.tables import Table, median, percentile
from fakes.dependencies import make_dependencies
from fakes.scripted_aws import ScriptedAws
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from fakes.webhook import EVENTS, SECRET, make_request
from relaunch.adapters.aws.dynamodb import job_items
from relaunch.adapters.aws.ecs.revisions import EcsRevisions
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.adapters.aws.sqs.launch_queue import SqsLaunchQueue, parse_launch_request
from relaunch.adapters.github.signature import SecretRing
from relaunch.adapters.github.webhook_request import Request, receive
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.adapters.offerings.capacity_providers import CapacityProviderOfferings
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.bootstrap import SystemClock
from relaunch.core.jobs.groups import GroupStanding
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import Dependencies
from relaunch.settings import parse_capacity_providers
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.submit_job import submit_event
from relaunch_local.ecs import Purchase
from relaunch_local.in_memory.definitions import InMemoryDefinitions
from relaunch_local.in_memory.jobs import InMemoryJobs
from relaunch_local.stack.training_cluster import (
    CLUSTER,
    INSTANCE_TYPES,
    ZONES,
    Training,
    capacity_providers,
    price_of,
    task_definition,
)

WARM_UP = 20
UNLIMITED = 1_000_000
STAGES = (
    "github_webhook",
    "submit_job",
    "launch_attempt, until RunTask",
    "a push, until RunTask",
    "launch_attempt, whole",
)


class EncodedJobs(InMemoryJobs):
    """Stores jobs as items of the jobs table."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[str, Any] = {}

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry], standing: GroupStanding | None = None) -> bool:
        self._encode(Decision(job, tuple(timeline)), replace(job, version=1))
        return super().create_job(job, timeline, standing)

    def load_job(self, job_id: str) -> Job | None:
        found = self._items.get(job_id)
        return job_items.read_job(*found) if found else None

    def save_job(self, decision: Decision) -> Job:
        saved = super().save_job(decision)
        self._encode(decision, saved)
        return saved

    def _encode(self, decision: Decision, job: Job) -> None:
        items = job_items.written_items(decision, job)
        attempt = next((item for item in items if item["sk"]["S"].startswith("ATTEMPT")), None)
        self._items[job.job_id] = (job_items.job_item(job, "write"), attempt)


class Decisions:
    """Processes pushes; `milliseconds` has a list for each of STAGES."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, list[float]] = {stage: [] for stage in STAGES}
        self._ecs = ScriptedAws("ecs")
        self._sqs = ScriptedAws("sqs")
        self._deps = _make_dependencies(self._ecs, self._sqs)
        self._secrets = SecretRing(lambda _stage: (SECRET, 0.0), time.time, 0.0)
        self._queued: list[str] = []
        self._run_task_at = 0.0
        self._ecs.client.meta.events.register_first("before-send.ecs.RunTask", self._note_run_task)

    def take(self, push: dict[str, Any]) -> None:
        """Process a push from the webhook to its task."""
        self._script_answers()
        started = time.perf_counter()
        receive(Request(push), self._secrets, self._enqueue, "2026-11-03T12:30:42Z")
        queued = time.perf_counter()
        for event in parse_intake_message(self._queued.pop()):
            if not isinstance(event, IgnoredEvent):
                submit_event(event, self._deps)
        (message,) = self._sqs.sent("SendMessage")
        submitted = time.perf_counter()
        launch_attempt(parse_launch_request(message["MessageBody"]), self._deps)
        launched = time.perf_counter()
        self._sqs.requests.clear()
        until_run_task = self._run_task_at - started
        taken = (
            queued - started,
            submitted - queued,
            self._run_task_at - submitted,
            until_run_task,
            launched - submitted,
        )
        for stage, seconds in zip(STAGES, taken, strict=True):
            self.milliseconds[stage].append(seconds * 1000)

    def forget(self) -> None:
        """Discard the measurements so far."""
        for measured in self.milliseconds.values():
            measured.clear()

    def _script_answers(self) -> None:
        revision = {**task_definition(Training()), "taskDefinitionArn": _arn("task-definition/relaunch-trainer:11")}
        self._ecs.answer("DescribeTaskDefinition", taskDefinition={**revision, "revision": 11, "status": "ACTIVE"})
        self._ecs.answer("RunTask", tasks=[{"taskArn": _arn(f"task/{CLUSTER}/5f1c0e9a7b3d4c21a8e6f0d2b4c69713")}])
        self._sqs.answer("SendMessage", MessageId="0f6c2a30")

    def _enqueue(self, message: str) -> str:
        self._queued.append(message)
        return "0f6c2a30"

    def _note_run_task(self, **_: Any) -> None:
        self._run_task_at = time.perf_counter()


def measure(session: Session) -> list[Table]:
    """Measure all stages over many pushes of different commits."""
    pushes = [_push(number) for number in range(WARM_UP + session.pushes)]
    decisions = Decisions()
    for push in pushes[:WARM_UP]:
        decisions.take(push)
    decisions.forget()
    for push in pushes[WARM_UP:]:
        decisions.take(push)
    rows = [
        (stage, median(measured), percentile(measured, 99), max(measured))
        for stage, measured in decisions.milliseconds.items()
    ]
    return [
        Table(
            f"Warm decision time in milliseconds, without network, over {session.pushes} pushes",
            ("stage", "median", "p99", "slowest"),
            rows,
            (f"{len(list(INSTANCE_TYPES)) * len(Purchase)} offerings to choose from.",),
        )
    ]


def _make_dependencies(ecs: ScriptedAws, sqs: ScriptedAws) -> Dependencies:
    prices = {
        (name, zone): price
        for name in INSTANCE_TYPES
        for zone in ZONES
        if (price := price_of(name, zone, Purchase.SPOT)) is not None
    }
    definitions = InMemoryDefinitions()
    for definition in example_definitions():
        definitions.save_definition(replace(definition, max_running_jobs=UNLIMITED, max_waiting_jobs=UNLIMITED))
    log = ListLog()
    return make_dependencies(
        jobs=EncodedJobs(),
        definitions=definitions,
        clock=SystemClock(),
        limits=StackLimits(max_running_jobs=UNLIMITED, max_waiting_jobs=UNLIMITED),
        log=log,
        tasks=EcsTarget(ecs.client, CLUSTER),
        revisions=EcsRevisions(ecs.client),
        offerings=CapacityProviderOfferings(
            parse_capacity_providers(capacity_providers()),
            FakeSpotPrices(prices),
            CurrentSnapshot(FakeSnapshots(), "eu-central-1", log),
            log,
        ),
        launches=SqsLaunchQueue(sqs.client, "https://sqs.eu-central-1.amazonaws.com/111122223333/attempts"),
    )


def _push(number: int) -> dict[str, Any]:
    """Return a signed request of a push of another commit."""
    payload = json.loads((EVENTS / "github.push.json").read_text())
    # Not from 0: forty zeros mean a deleted branch.
    payload["after"] = payload["head_commit"]["id"] = f"{number + 1:040x}"
    return make_request(json.dumps(payload).encode(), {"x-github-delivery": f"push-{number}"})


def _arn(resource: str) -> str:
    return f"arn:aws:ecs:eu-central-1:111122223333:{resource}"
