"""Where the story is played: what can be value of the local world, and how long it is waited for."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from relaunch.ports import Dependencies, JobHistory
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.job_logs import JobLogs
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
    """Something that belongs to the story did not come true, or not in time; the message says what."""


@dataclass
class Session:
    """The world in which the story is played, through the eyes of the `relaunch` command and of a recorder."""

    local: LocalWorld
    connection: AwsConnection
    screen: Screen
    recorder: Recorder
    timeout_seconds: float
    jobs: dict[str, str] = field(default_factory=dict)
    """The id of the job of each story."""
    logs: dict[str, TrainingLog] = field(default_factory=dict)
    _readers: dict[str, JobLogs] = field(default_factory=dict)

    @property
    def deps(self) -> Dependencies:
        """The ports of the deployed stack, with the root user's credentials."""
        return self.connection.deps

    def expect(self, what: str, poll: Callable[[], Value | None], *, is_silent: bool = False) -> Value:
        """Look until there is something to see, and say what is waited for unless `is_silent`.

        Raises:
            UnmetExpectationError: it did not come in time.
        """
        deadline = time.monotonic() + self.timeout_seconds
        with nullcontext() if is_silent else self.screen.status_line(what):
            while (value := poll()) is None:
                if time.monotonic() > deadline:
                    raise UnmetExpectationError(f"not within {self.timeout_seconds:.0f} s: {what}")
                time.sleep(POLL_SECONDS)
        return value

    def expect_job(self, job_id: str, what: str, poll: Callable[[JobHistory], Value | None]) -> Value:
        """Look at a job until there is something to see; a job that is over gives no more hope.

        Raises:
            UnmetExpectationError: it did not come in time, or the job ended before.
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

    def expect_request(self, action: str, what: str, is_meant: Callable[[dict[str, Any]], bool]) -> RecordedRequest:
        """Wait for a request that ECS has carried out.

        Raises:
            UnmetExpectationError: it did not come in time.
        """

        def poll() -> RecordedRequest | None:
            with self.local.simulator.clock.lock:
                requests = list(self.local.simulator.requests)
            done = (each for each in requests if each.action == action and each.outcome[0] == "ok")
            return next((each for each in done if is_meant(each.parameters)), None)

        return self.expect(what, poll)

    def expect_running(self, job_id: str, attempt: int) -> Instance:
        """Wait until the task of an attempt runs; return its machine.

        ECS is watched, not the table: the training goes on, whenever Relaunch hears of it.

        Raises:
            UnmetExpectationError: it did not come in time.
        """
        simulator, started_by = self.local.simulator, f"{job_id}/{attempt}"

        def poll() -> Instance | None:
            with simulator.clock.lock:
                news = [event["detail"] for event in self.recorder.events if event["source"] == "aws.ecs"]
                instances = {instance.arn: instance for instance in simulator.instances.by_id.values()}
            running = (each for each in news if each.get("lastStatus") == "RUNNING")
            arns = (each["containerInstanceArn"] for each in running if each.get("startedBy") == started_by)
            return next((instances[arn] for arn in arns), None)

        return self.expect(f"attempt {attempt} runs: a machine comes from zero, registers, pulls the image", poll)

    def read_log(self, job_id: str) -> TrainingLog:
        """Read on in what the tasks of a job wrote."""
        log = self.logs.setdefault(job_id, TrainingLog())
        reader = self._readers.setdefault(job_id, JobLogs(self.connection.logs, CONTAINER))
        history = self.deps.jobs.load_history(job_id)
        if history is not None:
            for line in reader.read(history, self.deps.clock.now()):
                log.add_line(line.attempt_number, line.message)
        return log

    def require(self, is_true: bool, what: str) -> None:
        """Insist on something that must be true by now.

        Raises:
            UnmetExpectationError: it is not.
        """
        if not is_true:
            raise UnmetExpectationError(what)
