"""People who retry jobs that have ended: each sends a request until it is answered, and some send it twice.

In few seeds one asks for a checkpoint that was never written: such a job ends without a task.
"""

from collections.abc import Mapping
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch.entrypoints.job_api import answer_request
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.checks.retries import kept_of
from relaunch_local.simulation.workload import Workload

# In the other seeds nobody retries a job.
_SHARE_OF_SEEDS = 0.4
_MOST = 3
_EVERY = 40
_FIRST = 21
_NEVER_REACHED = 10**9


class Retries:
    """Retries jobs while there are faults, some of them retries of others."""

    def __init__(self, account: SimulatedAccount, workload: Workload) -> None:
        """Schedule the retries."""
        self._account = account
        self._workload = workload
        self._dice = account.chance.stream("retries")
        # A stream of its own: nothing else is drawn otherwise for it.
        self._step_dice = account.chance.stream("retries-from-a-step")
        self._answered: dict[str, str] = {}
        """By the key of a request: the job that it was answered with."""
        if self._dice.random() < _SHARE_OF_SEEDS:
            for number in range(self._dice.randint(1, _MOST)):
                seconds = self._dice.uniform(0.4, 1.0) * account.scenario.chaos_seconds
                account.clock.call_later(seconds, lambda key=f"retry-{number}": self._retry_any_job(key))  # type: ignore[misc]  # mypy cannot infer a lambda with a default

        if account.chance.seed % _EVERY == _FIRST:
            seconds = self._step_dice.uniform(0.6, 1.0) * account.scenario.chaos_seconds
            account.clock.call_later(seconds, self._retry_from_no_step)

    def _retry_from_no_step(self) -> None:
        account = self._account
        jobs = account.invariants.jobs.values()
        ended = [job for job in jobs if job.state.is_final and job.definition.checkpoint_uri is not None]
        if ended and account.chance.strikes("retry-from-no-step", 2.0):
            job = self._step_dice.choice(ended)
            key = "retry-from-no-step"
            self._workload.planned.add((job.definition.name, key, 1))
            self._send(job, key, {"step": _NEVER_REACHED})

    def _retry_any_job(self, key: str) -> None:
        account = self._account
        ended = [job for job in account.invariants.jobs.values() if job.state.is_final]
        if not ended or not account.chance.strikes("user-retries", 2.0):
            return
        # Mostly one that has come far, and so may have checkpoints, or retries another one.
        far = [job for job in ended if job.attempt is not None or job.resume_from]
        job = self._dice.choice(far if far and self._dice.random() < 0.9 else ended)
        self._workload.planned.add((job.definition.name, key, 1))
        self._send(job, key)
        if self._dice.random() < 0.5 and account.chance.strikes("retry-sent-twice", 2.0):
            account.clock.call_later(self._dice.choice((0.0, 1.0, 300.0)), lambda: self._send(job, key))

    def _send(self, job: Job, key: str, point: Mapping[str, int] | None = None) -> None:
        account = self._account
        request = {"action": "retry", "job_id": job.job_id, "idempotency_key": key, **(point or {})}

        dice = self._dice if point is None else self._step_dice

        def on_end(answer: Any, error: BaseException | None) -> None:
            if error is not None:
                self._workload.expect("job_api", error)
            else:
                account.invariants.check("a request that is right is granted", "job" in answer, f"{request}: {answer}")
            if error is not None or "job" not in answer:
                account.clock.call_later(dice.uniform(5.0, 120.0), lambda: self._send(job, key, point))
                return
            self._workload.accepted.add((job.definition.name, key, 1))
            self._check_answer(job, key, answer["job"]["job_id"])
            # The retry of such a job begins at the same step, as the job itself saved none.
            if point is not None or job.job_id in self._workload.without_checkpoint:
                self._workload.without_checkpoint.add(answer["job"]["job_id"])

        account.lambdas.call("job_api", lambda: answer_request(request, "", account.deps), on_end, key)

    def _check_answer(self, job: Job, key: str, job_id: str) -> None:
        check = self._account.invariants.check
        jobs = self._account.invariants.jobs
        first = self._answered.setdefault(key, job_id)
        check("one retry is one job", job_id == first != job.job_id, f"{key} of {job.job_id}: {first}, {job_id}")
        check("a job that is retried stays as it was", kept_of(jobs[job.job_id]) == kept_of(job), job.job_id)
