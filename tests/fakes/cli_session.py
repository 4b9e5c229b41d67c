"""What the command connects to in tests: a stack of fakes, or one that CloudFormation describes."""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError
from typer import testing

from fakes.builders import (
    INSTANCE_ID,
    container_instance_arn,
    make_definition,
    make_instance_type,
    make_node,
    make_offering,
)
from fakes.clock import FakeClock
from fakes.dead_letters import FakeDeadLetters
from fakes.dependencies import make_dependencies
from fakes.jobs import InMemoryJobs
from fakes.receiver_store import FakeReceiverStore
from fakes.schedules import FakeSchedules
from fakes.sources import FakeOfferings
from fakes.tasks import FakeTasks
from fakes.upload_rules import FakeUploadRules
from fakes.webhook_secret import FakeWebhookSecret
from relaunch.adapters.acs_driver_list import load_acs_drivers
from relaunch.core.checks import Check
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.ownership import Owner
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch.core.offerings.instance_types import Ami, AmiKind, AmiSystem, InstanceType, ami_parameter
from relaunch.core.offerings.offering import Offering
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import Dependencies
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_task import observe_task
from relaunch.usecases.submit_job import submit_direct
from relaunch_cli.app import app
from relaunch_cli.aws.ami_source import AmiSource
from relaunch_cli.aws.notices import StackNotices, open_notices
from relaunch_cli.job_logs import LogDestination, Tail
from relaunch_cli.log_positions import LogEvent

STACK_OUTPUTS = {
    "TableName": "jobs",
    "AttemptsQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/attempts",
    "ClusterName": "relaunch",
    "CapacityProviders": "g5-spot=g5.xlarge/spot,g5=g5.xlarge/on-demand",
    "MaxRunningJobs": "20",
    "MaxWaitingJobs": "5000",
    "MaxPricePerHour": "40",
    "MaxSpotRatio": "0.9",
    "TaskDefinitionFamilies": "relaunch-*",
    "TaskRolePath": "relaunch/",
    "ProvisioningDeadlineSeconds": "480",
}
DEFINITIONS = """jobs:
  resnet:
    task_definition: trainer
    container: main
    accelerator: {gpu: {memory: 16GiB}}
    checkpoint: s3://acme-checkpoints/
  bert:
    task_definition: trainer
    accelerator: {gpu: {}}
    on: [s3: {bucket: acme, prefix: in/}]
    checkpoint: s3://acme-checkpoints/
"""


def create_stack(name: str, outputs: Mapping[str, str]) -> None:
    """Create a stack with these outputs; moto must be active."""
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {key: {"Value": value} for key, value in outputs.items()},
    }
    body = json.dumps(template if outputs else {"Resources": template["Resources"]})
    boto3.client("cloudformation", "us-east-1").create_stack(StackName=name, TemplateBody=body)


def rewrite(file: Path, old: str, new: str) -> None:
    """Write DEFINITIONS to a file, with one text replaced."""
    assert old in DEFINITIONS
    file.write_text(DEFINITIONS.replace(old, new), encoding="utf-8")


# Each run would make all commands anew, which takes longer than most of them run.
testing._get_command = cache(testing._get_command)


@dataclass(frozen=True)
class Outcome:
    """What came of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """Return what was printed as JSON."""
        return json.loads(self.stdout)


# What a terminal is told beside text (ECMA-48, CSI); there are no others in the output of a pipe.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def flat(text: str) -> str:
    """Return a text as if no line of it were broken and no column were filled up."""
    return " ".join(text.split())


def invoke(*arguments: str, session: "CliSession | None" = None, columns: int = 0, answer: str = "") -> Outcome:
    """Run the command in this process; without a session it connects to AWS.

    With `columns` its output is a terminal of that width, whose control sequences are left out, else a pipe.
    """
    # No file can be there: nothing is kept from one run to the next.
    environment = {"NO_COLOR": "1", "XDG_CACHE_HOME": f"{os.devnull}/cache"}
    if columns:
        environment |= {"COLUMNS": str(columns), "TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "0"}
    result = testing.CliRunner().invoke(app, list(arguments), obj=session, env=environment, input=answer)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if not columns:
        return Outcome(result.exit_code, result.stdout, result.stderr)
    return Outcome(result.exit_code, *(_CONTROL.sub("", output) for output in (result.stdout, result.stderr)))


class FakeLogs:
    """Implements PodLogSource over a dictionary of streams; a page holds two lines. `ranks` are those of others."""

    page_length = 2

    def __init__(self, streams: Mapping[str, list[tuple[datetime, str]]] | None = None) -> None:
        self.streams = {name: list(lines) for name, lines in (streams or {}).items()}
        self.reads: list[str] = []
        self.ranks: dict[int, FakeLogs] = {}

    def of_rank(self, rank: int) -> "FakeLogs":
        return self if rank == 0 else self.ranks.get(rank, FakeLogs())

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        return LogDestination("/ecs/trainer", "train")

    def read(
        self, destination: LogDestination, stream: str, token: str | None, since: datetime | None = None, **_: object
    ) -> tuple[list[LogEvent], str | None]:
        self.reads.append(stream)
        if stream not in self.streams:
            return [], None
        start = int(token or 0)
        page = self.streams[stream][start : start + self.page_length]
        events = [LogEvent(*line) for line in page if since is None or line[0] >= since]
        return events, str(start + len(page))

    def tail(
        self, destination: LogDestination, stream: str, count: int, since: datetime | None = None, **_: object
    ) -> Tail:
        self.reads.append(stream)
        if stream not in self.streams:
            return Tail([], None)
        lines = [line for line in self.streams[stream] if since is None or line[0] >= since]
        newest = lines[len(lines) - min(count, len(lines)) :]
        return Tail([LogEvent(*line) for line in newest], str(len(self.streams[stream])))

    def kept_for(self, destination: LogDestination) -> timedelta | None:
        return None


class FakeLocalWorld:
    """Implements LocalControls: `calls` lists (name, arguments) in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, object]]] = []
        self.answer: Mapping[str, object] = {}

    def control(self, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        self.calls.append((name, arguments))
        return self.answer


class FakeAmis:
    """Implements AmiSource; `missing` kinds have no image, `failure`, when set, is raised."""

    def __init__(self) -> None:
        self.region = "us-east-1"
        self.missing: set[AmiKind] = set()
        self.failure: Exception | None = None

    def recommended(self, kinds: Iterable[AmiKind], system: AmiSystem) -> list[Ami]:
        if self.failure:
            raise self.failure
        return [self._image(kind, system) for kind in kinds]

    def _image(self, kind: AmiKind, system: AmiSystem) -> Ami:
        unknown = Ami(kind, system, self.region, ami_parameter(kind, system))
        if kind in self.missing:
            return unknown
        return replace(unknown, image_id=f"ami-{kind}", image_name=f"{system}-{kind}", agent_version="1.107.0")


def in_zone(row: InstanceType, zone: str, price: float, on_demand: float) -> Offering:
    """Build a spot offering in a zone, of no capacity provider."""
    prices = {"price_usd_per_hour": price, "on_demand_usd_per_hour": on_demand}
    return make_offering(row, zone=zone, capacity_provider=None, **prices)


class FakePlacementScores:
    """Implements ZoneScoreSource over zones; `asked` are the sets of types that were asked for."""

    def __init__(self, scores: Mapping[str, int]) -> None:
        self.scores = dict(scores)
        self.asked: list[set[str]] = []

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:
        self.asked.append(set(instance_types))
        return self.scores


class FakeQuotas:
    """Takes the place of the account's client of Service Quotas; `vcpus` are the quotas by code that are known."""

    def __init__(self) -> None:
        self.vcpus: dict[str, float] = {}

    def client(self, _service: str) -> "FakeQuotas":
        return self

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> dict[str, Any]:  # noqa: N803 - as in boto3
        if QuotaCode not in self.vcpus:
            error = {"Error": {"Code": "NoSuchResourceException", "Message": f"no {QuotaCode} of {ServiceCode}"}}
            raise ClientError(error, "GetServiceQuota")
        return {"Quota": {"QuotaCode": QuotaCode, "Value": self.vcpus[QuotaCode]}}


class CliSession:
    """Implements Connection; each pause of a command calls the next function of `on_pause`."""

    def __init__(self) -> None:
        big = make_instance_type("p4d.24xlarge", vcpus=96, gpu_count=8, accelerator_model="A100", gpu_memory_mib=40960)
        small = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=15360)
        self.jobs, self.tasks, self.clock, self.logs = InMemoryJobs(), FakeTasks(), FakeClock(), FakeLogs()
        self.pod_logs = FakeLogs()
        self.offerings = FakeOfferings(
            *FakeOfferings().available,
            make_offering(small, price_usd_per_hour=0.16),
            make_offering(big, PurchaseOption.ON_DEMAND, price_usd_per_hour=21.96, on_demand_usd_per_hour=21.96),
        )
        self.region_offerings = FakeOfferings(
            *(
                in_zone(small, f"us-east-1{letter}", usd, 0.526)
                for letter, usd in (("a", 0.21), ("b", 0.16), ("c", 0.16))
            ),
            in_zone(big, "us-east-1a", 9.0, 21.96),
        )
        self.placement_scores = FakePlacementScores({"us-east-1a": 9, "us-east-1b": 3, "us-east-1c": 3})
        self.recommended_amis = FakeAmis()
        self.dead_letters = FakeDeadLetters()
        self.upload_rules = FakeUploadRules()
        self.schedules = FakeSchedules()
        self.webhook = FakeWebhookSecret()
        self.stack_notices: StackNotices | None = FakeReceiverStore().of_stack()
        self.watched: list[Check] = []
        self.account = FakeQuotas()
        self.local_world = FakeLocalWorld()
        self.caller = "arn:aws:iam::111122223333:user/ada"
        self.on_pause: list[Callable[[], object]] = []
        self.deps = make_dependencies(
            jobs=self.jobs,
            tasks=self.tasks,
            clock=self.clock,
            offerings=self.offerings,
            acs_drivers=load_acs_drivers(),
        )
        self.owner = Owner("", "relaunch.yaml", self.caller)
        self.register(make_definition(max_price_usd_per_hour=4.0))

    def now(self) -> datetime:
        return self.clock.now()

    @property
    def notices(self) -> StackNotices:
        return self.stack_notices or open_notices({}, "relaunch", None)

    @property
    def all_types(self) -> Dependencies:
        return replace(self.deps, offerings=self.region_offerings, zone_scores=self.placement_scores)

    def amis(self, region: str) -> AmiSource:
        self.recommended_amis.region = region or "us-east-1"
        return self.recommended_amis

    def register(self, definition: JobDefinition) -> None:
        """Register a definition from the file `relaunch.yaml`, which is in no repository."""
        self.deps.definitions.save_definition(definition, self.owner)

    def check_watched(self, definitions: Sequence[JobDefinition]) -> list[Check]:
        return self.watched

    def pause(self, seconds: float) -> None:
        self.clock.advance(seconds)
        if not self.on_pause:
            raise KeyboardInterrupt
        self.on_pause.pop(0)()

    def submit(self, key: str = "first", definition: str = "resnet") -> str:
        """Submit a job of a definition and return its id."""
        return submit_direct(DirectRequest(f"direct:{key}", definition, {}, "ada", self.clock.now()), self.deps).job_id

    def launch(self, job_id: str) -> str:
        """Launch the job and return the ARN of its task."""
        self.clock.advance(timedelta(seconds=2))
        launch_attempt(job_id, self.deps)
        return self.jobs.job(job_id).current_attempt.task_id or ""

    def run(self, task_id: str) -> None:
        """Report the task as running, the first on INSTANCE_ID, each later one on another instance."""
        self.clock.advance(timedelta(minutes=3))
        number = len(self.tasks.instances)
        instance_id = f"i-{number:017x}" if number else INSTANCE_ID
        machine = make_node(name=container_instance_arn(number + 1), instance_id=instance_id)
        seen = self.tasks.run(task_id, machine, started_at=self.clock.now())
        observe_task(seen, self.deps)

    def interrupt(self, task_id: str) -> None:
        """Interrupt the task's instance: a warning, then the end of the task."""
        self.clock.advance(timedelta(hours=2))
        warning = InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, INSTANCE_ID, at=self.clock.now())
        observe_capacity(warning, self.deps)
        self.clock.advance(timedelta(seconds=40))
        observe_task(self.tasks.end(task_id, 143, **self._ended_at()), self.deps)

    def finish(self, task_id: str, exit_code: int = 0) -> None:
        """Report the task as stopped with this exit code."""
        self.clock.advance(timedelta(hours=1))
        observe_task(self.tasks.end(task_id, exit_code, **self._ended_at()), self.deps)

    def _ended_at(self) -> dict[str, datetime]:
        """Return the times of a task that is STOPPED now, whose program ended before that."""
        return {"stopped_at": self.clock.now(), "execution_stopped_at": self.clock.now() - NOTICE_LEAD}

    def run_interrupted_job(self) -> str:
        """Submit a job that runs again after an interruption, and return its id."""
        job_id = self.submit()
        first = self.launch(job_id)
        self.run(first)
        self.interrupt(first)
        self.run(self.launch(job_id))
        return job_id
