"""What the step does: plan, or submit, wait and cancel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.inputs import Inputs
from relaunch_action.job_api import JobApi, JobStatus
from relaunch_action.retries import Patience
from relaunch_action.summary import summarize_job, summarize_plan
from relaunch_action.workflow_commands import Runner
from relaunch_action.workflow_run import WorkflowRun

_POLL_SECONDS = 5.0
_LONGEST_REASON = 200


@dataclass(frozen=True)
class Step:
    """A step of a workflow's job."""

    inputs: Inputs
    workflow_run: WorkflowRun
    job_api: JobApi
    runner: Runner
    patience: Patience

    def run(self) -> None:
        """Do what the inputs ask for.

        Raises:
            ActionError: the step fails; the message says what to do.
        """
        if self.inputs.dry_run:
            self._plan()
            return
        job = self._submit()
        if self.inputs.wait and not job.is_final:
            job = self._follow(job)
        elif self._is_cancelled:
            job = self._end_with_workflow(job)
        self._report(job)
        self._judge(job)

    @property
    def _is_cancelled(self) -> bool:
        return self.patience.cancellation.is_requested

    def _plan(self) -> None:
        plan = self.job_api.plan(self.inputs.definition, self.inputs.inputs)
        self.runner.summarize(summarize_plan(plan))
        best = next(iter(_list(plan, "offerings")), None)
        self.runner.set_outputs({"revision-arn": _text(plan, "revision_arn"), "offering": _text(best, "offering")})
        for notice in _list(plan, "notices"):
            self.runner.log(str(notice))
        about = f"a job of {self.inputs.definition}"
        if problem := _text(plan, "problem"):
            raise ActionError(f"{about} cannot run: {problem}")
        if rejection := _text(plan, "rejection"):
            self.runner.warning(f"{about} would wait: {rejection}")
        else:
            self.runner.log(f"{about} would run on {_text(best, 'offering') or 'its cluster'}")

    def _submit(self) -> JobStatus:
        """Submit the job, or find it: a re-run starts another one only if the job of the run before has failed."""
        given = self.inputs.idempotency_key
        about = self.inputs
        first, *later = [given] if given else self.workflow_run.keys(about.definition, about.inputs, about.image_tag)
        job = self._submit_with(first)
        for key in later:
            if not job.is_final or job.has_succeeded:
                break
            job = self._submit_with(key)
        self.runner.log(job.describe())
        return job

    def _submit_with(self, key: str) -> JobStatus:
        try:
            about = self.inputs
            submission = self.job_api.submit(about.definition, about.inputs, key, about.image_tag)
        except UnavailableError as error:
            raise UnavailableError(
                f"{error}; whether a job was started is not known: re-run this job of the workflow, which finds it"
            ) from error
        self.runner.log(submission.note)
        self.runner.set_outputs({"job-id": submission.job.job_id, "is-new": str(submission.is_new).lower()})
        return submission.job

    def _follow(self, job: JobStatus) -> JobStatus:
        """Wait for the end of a job, and log what changes."""
        until = self.patience.clock() + self.inputs.wait_seconds
        while not job.is_final:
            if self._is_cancelled:
                return self._end_with_workflow(job)
            left = until - self.patience.clock()
            if left <= 0:
                self._report(job)
                raise ActionError(
                    f"{job.describe()} has not ended within {self.inputs.wait_seconds / 60:.0f} minutes, and goes on: "
                    "re-run this job of the workflow to wait for it again, or set wait-timeout-minutes"
                )
            self.patience.pause(min(_POLL_SECONDS, left))
            job = self._look(job)
        return job

    def _look(self, job: JobStatus) -> JobStatus:
        try:
            seen = self.job_api.show(job.job_id)
        except UnavailableError as error:
            # The job does not depend on us: an outage is waited for.
            self.runner.log(f"{error}; the job goes on")
            return job
        if seen.describe() != job.describe():
            self.runner.log(seen.describe())
        return seen

    def _end_with_workflow(self, job: JobStatus) -> JobStatus:
        """Cancel the job of a cancelled workflow if that is wanted."""
        if job.is_final:
            return job
        if not self.inputs.cancel_with_workflow:
            self._report(job)
            raise ActionError(f"the workflow was cancelled; {job.describe()} goes on (input cancel-with-workflow)")
        reason = f"its workflow was cancelled: {self.workflow_run.url}"[:_LONGEST_REASON]
        try:
            cancelled = self.job_api.cancel(job.job_id, reason)
        except ActionError as error:
            self._report(job)
            raise ActionError(
                f"the workflow was cancelled, but not the job: {error}; run `relaunch cancel {job.job_id}`"
            ) from error
        self._report(cancelled)
        raise ActionError(f"the workflow was cancelled, and the job with it: {cancelled.describe()}")

    def _report(self, job: JobStatus) -> None:
        self.runner.summarize(summarize_job(job))
        self.runner.set_outputs(
            {
                "job-id": job.job_id,
                "state": job.state,
                "reason": job.reason,
                "revision-arn": job.revision_arn,
                "offering": job.offering,
                "cost-usd": job.cost,
            }
        )

    def _judge(self, job: JobStatus) -> None:
        if job.is_final and not job.has_succeeded:
            raise ActionError(job.describe())


def _list(members: Mapping[str, Any], name: str) -> list[Any]:
    value = members.get(name)
    return value if isinstance(value, list) else []


def _text(members: Any, name: str) -> str:
    value = members.get(name) if isinstance(members, Mapping) else None
    return value if isinstance(value, str) else ""
