"""Histories of jobs for the drawings of the dashboard, and the environment that renders them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import relaunch_cli.dashboard
from fakes.builders import NOW, make_definition, make_job, make_placement, make_running_attempt, make_timeline_entry
from fakes.machine_story import MachineStory
from relaunch.core.jobs.attempt import Attempt, PlacementState, Stop, StopKind
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.reported import Reported, SeriesPoint
from relaunch.core.jobs.state import JobState
from relaunch.ports import JobHistory

JOB_ID = "resnet-1f2e3d4c"
MINUTE = timedelta(minutes=1)
DASHBOARD = Path(relaunch_cli.dashboard.__file__).parent


@cache
def environment() -> Environment:
    """Return the environment of the dashboard's templates, as strict as that of the page."""
    return Environment(
        autoescape=True, undefined=StrictUndefined, loader=FileSystemLoader(DASHBOARD / "templates"), trim_blocks=True
    )


def render(call: str, **names: Any) -> str:
    """Return what a macro renders: `timeline(t)`, `loss_curve(c)`."""
    macro = call.partition("(")[0]
    source = f"{{% from '{macro}.html' import {macro} %}}{{{{ {call} }}}}"
    return environment().from_string(source).render(**names)


def checkpoint(step: int, attempt: int = 1, job_id: str = JOB_ID) -> str:
    """Return the URI of a checkpoint."""
    return f"s3://acme-checkpoints/resnet/{job_id}/attempt-{attempt}/step-{step:07d}/"


def after(minutes: float) -> datetime:
    """Return the moment so many minutes after NOW, when jobs are accepted."""
    return NOW + minutes * MINUTE


def ran(number: int, began: float, ended: float | None, kind: StopKind = StopKind.HOST_LOST, **fields: Any) -> Attempt:
    """Return an attempt that was requested at `began` and ran a minute later, until `ended`, in minutes after NOW."""
    placement = make_placement(
        requested_at=after(began),
        state=PlacementState.PLACED if ended is None else PlacementState.CLOSED,
        resume_uri=fields.pop("resume_uri", None),
        machine_id=fields.pop("machine_id", ""),
    )
    stop = None if ended is None else Stop(kind, after(ended))
    attempt = make_running_attempt(number, placement=placement, started_at=after(began + 1), stop=stop)
    return replace(attempt, **fields)


def entry(minutes: float, state: JobState, event: str, number: int | None = None, detail: str = "") -> TimelineEntry:
    """Return a timeline entry so many minutes after NOW."""
    return make_timeline_entry(event, at=after(minutes), state=state, attempt_number=number, detail=detail)


def make_history(
    attempts: Sequence[Attempt] = (), timeline: Sequence[TimelineEntry] = (), job: Job | None = None, **fields: Any
) -> JobHistory:
    """Return the history of a job with these attempts; `fields` are those of the job."""
    definition = fields.pop("definition", make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/"))
    newest = attempts[-1] if attempts else None
    built = job or make_job(definition=definition, attempt=newest, **fields)
    return JobHistory(built, tuple(attempts), tuple(timeline) or (make_timeline_entry(),), ())


class TrainingStory(MachineStory):
    """A job on machines of our own whose training notes ten steps a minute, and saves as docs/checkpoints.md says."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/", total_steps=3000), **limits)
        self.job_id = self.submit()
        self.step = 0
        self._series: dict[int, SeriesPoint] = {}
        self._saves: list[tuple[int, int, datetime]] = []

    def boot(self, seconds: int = 70) -> None:
        """Let the machine that is asked for register, and the task pull its image for 80 seconds and run."""
        for _ in range(3):
            self.deliver()
            self.make_ec2_calls()
        self.clock.advance(seconds)
        self.register(self.machine(self.job_id))
        self.settle_all()
        pull_began_at = self.clock.advance(20)
        pull_ended_at = self.clock.advance(80)
        started_at = self.clock.advance(10)
        self.tell(
            self.tasks.run(
                self.arn(self.job_id),
                started_at=started_at,
                pull_started_at=pull_began_at,
                pull_stopped_at=pull_ended_at,
            )
        )
        resumed = self.attempt(self.job_id).placement.resume_uri
        self.step = int(resumed.rstrip("/").rpartition("step-")[2]) if resumed else 0
        self._series = {step: point for step, point in self._series.items() if step <= self.step}

    def train(self, minutes: int, save_every: int = 20) -> None:
        """Let it train, and save every so many minutes."""
        for minute in range(1, minutes + 1):
            self.clock.advance(MINUTE)
            self.step += 10
            self._series[self.step] = SeriesPoint(
                self.step, float(int(self.now.timestamp())), 2.5 * math.exp(-self.step / 900)
            )
            if minute % save_every == 0:
                self.save()

    def save(self) -> None:
        """Let it save a checkpoint of its step."""
        number = self.attempt(self.job_id).number
        self._saves.append((number, self.step, self.now))
        own = [(step, at) for attempt, step, at in self._saves if attempt == number and step < self.step]
        self.checkpoints.complete[self.job_id] = checkpoint(self.step, number, self.job_id)
        self.checkpoints.saved_at = self.now
        self.checkpoints.earlier = tuple(own)
        self.checkpoints.reported = Reported(total_steps=3000, series=tuple(self._series.values()))
