"""A stack with jobs in every state, for the pages of `relaunch dashboard`: the same whenever it is made."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from fakes.builders import NOW, make_attempt, make_definition, make_job, make_running_attempt, with_stored
from fakes.cli_session import CliSession
from fakes.sources import FakeCheckpoints
from relaunch.core.definitions.definition import InputRule
from relaunch.core.jobs.job import TimelineEntry
from relaunch.core.jobs.reported import Reported, SeriesPoint
from relaunch.core.jobs.state import JobState, NotedProgress, Waiting, WaitReason
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_task import observe_task
from relaunch_cli.dashboard.application import Dashboard
from relaunch_cli.dashboard.guard import Guard
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.dashboard.server import DashboardServer

SCRIPT = "<script>document.title='run'</script>"
HOSTILE = f"'\"><img src=x onerror=alert(1)>{SCRIPT}"
BIDI = "a\u202egnp.exe\u2066\x1b[31m"
_BY_HAND = {
    "wait-capacity": Waiting(
        WaitReason.CAPACITY, NOW, "all 3 offerings failed within 30 minutes", NOW + timedelta(days=1)
    ),
    "wait-budget": Waiting(WaitReason.BUDGET, NOW, "definition/resnet has 0.12 USD of 50.00 USD left this month"),
    "wait-image": Waiting(WaitReason.IMAGE, NOW, "trainer:5e07 is not in the registry", NOW + timedelta(days=1)),
}


class DashboardWorld(CliSession):
    """Jobs in every state; `running`, `succeeded` and `hostile` are the IDs of three of them."""

    def __init__(self) -> None:
        super().__init__()
        self.checkpoints = FakeCheckpoints()
        self.deps = replace(self.deps, checkpoints=self.checkpoints)
        self.register(
            make_definition(
                name="bert", inputs={"epochs": InputRule("[0-9]{1,3}", "10"), "seed": InputRule("[0-9]*", "7")}
            )
        )
        self.succeeded = self._run_with_interruptions(3)
        self.finish(self.task(self.succeeded))
        self._add(
            "failed-1f2e", JobState.FAILED, reason="its program ended with exit code 1 three times", ended_at=self.now()
        )
        self._add("cancelled-9d1c", JobState.CANCELLED, reason="cancelled by ada", ended_at=self.now())
        self._add("timed-out-77aa", JobState.TIMED_OUT, reason="it ran for 24 hours", ended_at=self.now())
        for job_id, waiting in _BY_HAND.items():
            self._add(job_id, JobState.WAITING, waiting=waiting)
        self._add("launching-5e07", JobState.LAUNCHING, waiting=None, attempt=make_attempt(), has_slot=True)
        self._add(
            "stopping-31ab",
            JobState.STOPPING,
            waiting=None,
            attempt=make_running_attempt(),
            cancel_requested="by ada",
            has_slot=True,
        )
        self.hostile = "hostile-0bad"
        self._add(
            self.hostile,
            JobState.FAILED,
            definition=make_definition(name=HOSTILE),
            trigger=TriggerFacts("s3", f"s3:{HOSTILE}", f"s3://acme/{HOSTILE}{BIDI}", {}),
            inputs={HOSTILE: HOSTILE, "link": "javascript:alert(1)", "long": "x" * 20_000},
            reason=HOSTILE + BIDI,
            ended_at=self.now(),
        )
        self.running = self._run_with_interruptions(1)
        self.save(self.running, 4_000)
        self.log(self.running, "epoch 1", "relaunch: step=4000 of=20000 loss=0.8231", f"\x1b[32m{HOSTILE}{BIDI}\x1b[0m")
        self.note(self.running, 4_000)
        self.clock.advance(3_600)
        self.save(self.running, 7_000)
        self.log(self.running, "relaunch: step=7000 of=20000 loss=0.6333")

    def forget_hostile(self) -> None:
        """Leave the hostile job and line out, as on a picture."""
        self.jobs._records.pop(self.hostile)
        for lines in self.logs.streams.values():
            lines[:] = [each for each in lines if HOSTILE not in each[1]]

    def task(self, job_id: str) -> str:
        """Return the ARN of the task of a job."""
        return self.jobs.job(job_id).current_attempt.task_id or ""

    def log(self, job_id: str, *messages: str) -> None:
        """Let the task of a job write lines."""
        stream = f"train/main/{self.task(job_id).rsplit('/', 1)[-1]}"
        self.logs.streams.setdefault(stream, []).extend((self.now(), each) for each in messages)

    def save(self, job_id: str, step: int) -> None:
        """Let the task of a job save a checkpoint."""
        number = self.jobs.job(job_id).current_attempt.number
        uri = f"s3://acme-checkpoints/resnet/{job_id}/attempt-{number}/step-{step:07d}/"
        self.checkpoints.complete[job_id] = uri
        self.checkpoints.saved_at = self.now()
        saved = self.now().timestamp()
        losses = (
            SeriesPoint(each, saved - 2 * (step - each), 0.5 + 1_000 / (each + 500)) for each in range(0, step + 1, 100)
        )
        self.checkpoints.reported = Reported(loss=0.5 + 1_000 / (step + 500), total_steps=20_000, series=tuple(losses))

    def note(self, job_id: str, step: int) -> None:
        """Let the functions note how far a training is."""
        noted = NotedProgress(step, self.now(), 2, 20_000, 0.8231, self.now() + timedelta(hours=3), 600.0)
        self.change(job_id, noted=noted)

    def throttled(self) -> ClientError:
        """Return the error of a call that DynamoDB throttles."""
        return ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "Query")

    def change(self, job_id: str, **fields: Any) -> None:
        """Change fields of a job."""
        record = self.jobs._records[job_id]
        changed = with_stored(record.job, **fields, version=record.job.version + 1)
        self.jobs._store(changed, ())

    def _add(self, job_id: str, state: JobState, **fields: Any) -> None:
        job = make_job(
            job_id, **{"state": state, "waiting": None, "accepted_at": self.now(), "state_since": self.now(), **fields}
        )
        self.jobs.create_job(
            job, (TimelineEntry(self.now(), JobState.WAITING, "accepted"), TimelineEntry(self.now(), state, "changed"))
        )
        self.clock.advance(60)

    def _run_with_interruptions(self, count: int) -> str:
        job_id = self.submit(f"interrupted {count} times")
        for number in range(count):
            self.run(self.launch(job_id))
            self.clock.advance(timedelta(hours=2))
            self.save(job_id, (number + 1) * 1_000)
            instance_id = self.jobs.job(job_id).current_attempt.instance_id or ""
            observe_capacity(
                InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, instance_id, at=self.now()), self.deps
            )
            self.clock.advance(40)
            observe_task(self.tasks.end(self.task(job_id), 143, **self._ended_at()), self.deps)
        self.run(self.launch(job_id))
        return job_id


def own(port: int, guard: Guard, method: str = "GET", target: str = "/", body: bytes = b"", **headers: str) -> Request:
    """Return a request as the page of the dashboard itself sends it; headers are named with underscores."""
    given = {
        "host": f"127.0.0.1:{port}",
        "cookie": guard.cookie.partition(";")[0],
        "sec-fetch-site": "same-origin",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return Request(method, target, list(given.items()), body)


@contextmanager
def serving(world: DashboardWorld, poll_seconds: float = 0.1) -> Iterator[Guard]:
    """Serve the pages of a world; yield the guard, whose `url` lets a browser in."""
    server = DashboardServer()
    guard = Guard(server.port)
    server.answer = Dashboard(world, guard, "relaunch", poll_seconds).answer
    server.serve_in_background()
    try:
        yield guard
    finally:
        server.shutdown()
        server.server_close()
