"""What the stories of the demo use: the local world, and waiting for what is expected in it."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from relaunch.ports import Dependencies, JobHistory
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.job_logs import JobLogs
from relaunch_local.demo.outside import Outside
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.training_log import TrainingLog
from relaunch_local.ecs import RecordedRequest
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.stack.local_world import LocalWorld

Value = TypeVar("Value")

POLL_SECONDS = 0.15
CONTAINER = "main"


class UnmetExpectationError(Exception):
    """Something expected did not happen, or not in time; the message says what."""


@dataclass
class Session:
    """The local world, what is outside of it, the connection of `relaunch` to it, the terminal and the recorder."""

    local: LocalWorld
    connection: AwsConnection
    screen: Screen
    recorder: Recorder
    timeout_seconds: float
    outside: Outside
    shown_statuses: int = 0
    """How many statuses of the commit have been shown."""
    shown_notices: int = 0
    jobs: dict[str, str] = field(default_factory=dict)
    """The job id of each story."""
    logs: dict[str, TrainingLog] = field(default_factory=dict)
    write_rank_logs: Callable[[], list[dict[str, object]]] = list
    """Returns the lines of each rank of a job over several machines."""
    _readers: dict[str, JobLogs] = field(default_factory=dict)

    @property
    def deps(self) -> Dependencies:
        """The dependencies of the deployed stack, with the root user's credentials."""
        return self.connection.deps

    def expect(self, what: str, poll: Callable[[], Value | None], *, is_silent: bool = False) -> Value:
        """Poll until there is a value, and return it; show what is waited for unless `is_silent`.

        Raises:
            UnmetExpectationError: it did not happen in time.
        """
        deadline = time.monotonic() + self.timeout_seconds
        with nullcontext() if is_silent else self.screen.status_line(what):
            while (value := poll()) is None:
                if time.monotonic() > deadline:
                    raise UnmetExpectationError(f"not within {self.timeout_seconds:.0f} s: {what}")
                time.sleep(POLL_SECONDS)
        return value

    def expect_job(self, job_id: str, what: str, poll: Callable[[JobHistory], Value | None]) -> Value:
        """Poll a job until there is a value, and return it.

        Raises:
            UnmetExpectationError: it did not happen in time, or the job ended before.
        """

        def poll_job() -> Value | None:
            history = self.deps.jobs.load_history(job_id)
            value = None if history is None else poll(history)
            if value is None and history is not None and history.job.state.is_final:
                raise UnmetExpectationError(
                    f"{job_id} is {history.job.state} ({history.job.reason}) before this: {what}"
                )
            return value

        return self.expect(what, poll_job)

    def expect_request(self, action: str, what: str, matches: Callable[[dict[str, Any]], bool]) -> RecordedRequest:
        """Wait for a successful request to ECS.

        Raises:
            UnmetExpectationError: it did not happen in time.
        """

        def poll() -> RecordedRequest | None:
            with self.local.simulator.clock.lock:
                requests = list(self.local.simulator.requests)
            done = (each for each in requests if each.action == action and each.outcome[0] == "ok")
            return next((each for each in done if matches(each.parameters)), None)

        return self.expect(what, poll)

    def expect_running(self, job_id: str, attempt: int) -> Instance:
        """Wait until the task of an attempt is RUNNING; return its instance.

        The events of ECS are read, not the jobs table: the training does not wait for Relaunch.

        Raises:
            UnmetExpectationError: it did not happen in time.
        """
        simulator = self.local.simulator
        started_by = f"{job_id}/{attempt}"

        def poll() -> Instance | None:
            with simulator.clock.lock:
                details = [event["detail"] for event in self.recorder.events if event["source"] == "aws.ecs"]
                instances = {instance.arn: instance for instance in simulator.instances.by_id.values()}
            running = (each for each in details if each.get("lastStatus") == "RUNNING")
            arns = (each["containerInstanceArn"] for each in running if each.get("startedBy") == started_by)
            return next((instances[arn] for arn in arns), None)

        return self.expect(f"attempt {attempt} runs: the image is pulled, the container starts", poll)

    def statuses_of(self, job_id: str, attempt: int) -> list[str]:
        """Return the statuses that ECS has published of the task of an attempt, in order."""
        with self.local.simulator.clock.lock:
            details = [event["detail"] for event in self.recorder.events if event["source"] == "aws.ecs"]
        return [each["lastStatus"] for each in details if each.get("startedBy") == f"{job_id}/{attempt}"]

    def read_log(self, job_id: str) -> TrainingLog:
        """Return the log of a job's training, with all lines that are there by now."""
        log = self.logs.setdefault(job_id, TrainingLog())
        history = self.deps.jobs.load_history(job_id)
        if history is not None:
            if job_id not in self._readers:
                source = self.connection.pod_logs if self.local.alibaba else self.connection.logs
                self._readers[job_id] = JobLogs(source, CONTAINER)
            reader = self._readers[job_id]
            for line in reader.read(history, self.deps.clock.now()):
                log.add_line(line.attempt_number, line.message)
        return log

    def require(self, is_true: bool, what: str) -> None:  # noqa: FBT001 - is read as an assert
        """Check a condition.

        Raises:
            UnmetExpectationError: the condition is false.
        """
        if not is_true:
            raise UnmetExpectationError(what)
