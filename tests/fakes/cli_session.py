"""A stack for the command: a world of fakes that lives on while somebody watches, and logs to be read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from fakes.builders import INSTANCE_ID, make_container_instance, make_definition, make_instance_type, make_offering
from fakes.clock import FakeClock
from fakes.dead_letters import FakeDeadLetters
from fakes.dependencies import make_dependencies
from fakes.jobs import InMemoryJobs
from fakes.sources import FakeOfferings
from fakes.tasks import FakeTasks
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind
from relaunch.core.offerings.amis import Ami, AmiKind, AmiSystem, ami_parameter
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import Dependencies
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_task import observe_task
from relaunch.usecases.submit_job import submit_direct
from relaunch_cli.aws.connection import AmiSource
from relaunch_cli.job_logs import LogDestination, LogEvent


class FakeLogs:
    """Implements LogSource over a dictionary of streams; a page holds two lines."""

    page_length = 2

    def __init__(self, streams: Mapping[str, list[tuple[datetime, str]]] | None = None) -> None:
        self.streams = {name: list(lines) for name, lines in (streams or {}).items()}
        self.reads: list[str] = []

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        return LogDestination("/ecs/trainer", "train")

    def read(self, destination: LogDestination, stream: str, token: str | None) -> tuple[list[LogEvent], str | None]:
        self.reads.append(stream)
        if stream not in self.streams:
            return [], None
        start = int(token or 0)
        page = self.streams[stream][start : start + self.page_length]
        return [LogEvent(*line) for line in page], str(start + len(page))


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


class Stage:
    """Implements Connection. Each pause of a watching command plays the next of `scenes`."""

    def __init__(self) -> None:
        big = make_instance_type("p4d.24xlarge", vcpus=96, gpu_count=8, accelerator_model="A100", gpu_memory_mib=40960)
        small = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=15360)
        self.jobs, self.tasks, self.clock, self.logs = InMemoryJobs(), FakeTasks(), FakeClock(), FakeLogs()
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
        self.odds = FakePlacementScores({"us-east-1a": 9, "us-east-1b": 3, "us-east-1c": 3})
        self.images = FakeAmis()
        self.dead_letters = FakeDeadLetters()
        self.scenes: list[Callable[[], object]] = []
        self.deps = make_dependencies(jobs=self.jobs, tasks=self.tasks, clock=self.clock, offerings=self.offerings)
        self.deps.definitions.save_definition(make_definition(max_price_usd_per_hour=4.0))

    @property
    def all_types(self) -> Dependencies:
        return replace(self.deps, offerings=self.region_offerings, zone_scores=self.odds)

    def amis(self, region: str) -> AmiSource:
        self.images.region = region or "us-east-1"
        return self.images

    def pause(self, seconds: float) -> None:
        self.clock.advance(seconds)
        if not self.scenes:
            raise KeyboardInterrupt
        self.scenes.pop(0)()

    def submit(self, key: str = "first") -> str:
        """Submit a job of the definition `resnet` and return its id."""
        return submit_direct(DirectRequest(f"direct:{key}", "resnet", {}, "ada", self.clock.now()), self.deps).job_id

    def launch(self, job_id: str) -> str:
        """Let the job be launched and return its task's ARN."""
        self.clock.advance(timedelta(seconds=2))
        launch_attempt(job_id, self.deps)
        return self.jobs.job(job_id).current_attempt.task_arn or ""

    def launch_only(self, job_id: str) -> None:
        """Let a launch be tried."""
        launch_attempt(job_id, self.deps)

    def run(self, task_arn: str) -> None:
        """Let the task run."""
        self.clock.advance(timedelta(minutes=3))
        seen = self.tasks.run(task_arn, make_container_instance(), started_at=self.clock.now())
        observe_task(seen, self.deps)

    def interrupt(self, task_arn: str) -> None:
        """Take the machine away two minutes after a warning."""
        self.clock.advance(timedelta(hours=2))
        news = InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, INSTANCE_ID, at=self.clock.now())
        observe_capacity(news, self.deps)
        self.clock.advance(timedelta(seconds=40))
        observe_task(self.tasks.end(task_arn, 143, stopped_at=self.clock.now()), self.deps)

    def finish(self, task_arn: str, exit_code: int = 0) -> None:
        """Let the program end."""
        self.clock.advance(timedelta(hours=1))
        observe_task(self.tasks.end(task_arn, exit_code, stopped_at=self.clock.now()), self.deps)
