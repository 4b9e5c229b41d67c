"""A client of `job_api` and of `plan_api` by their function URLs (docs/job-api.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Callable

from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.http_requests import NoResponseError, Request, Response, Send
from relaunch_action.retries import Patience
from relaunch_action.signature import Credentials, Scope, signed_post

_FORBIDDEN = 403
_TOO_MANY_REQUESTS = 429
_LOWEST_SERVER_ERROR = 500
_SUCCEEDED = "SUCCEEDED"


class RefusedError(ActionError):
    """job_api refused the request, and would again; `code` names the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True)
class JobStatus:
    """A job as job_api describes it; a state that this version of the action does not know is shown as it is."""

    job_id: str
    state: str
    is_final: bool
    reason: str
    revision_arn: str
    attempt: int | None
    offering: str
    interruptions: int
    failures: int
    cost: str

    @property
    def has_succeeded(self) -> bool:
        """Return whether the job has ended well."""
        return self.is_final and self.state == _SUCCEEDED

    def describe(self) -> str:
        """Return the job in one line."""
        parts = [f"job {self.job_id}: {self.state}"]
        if self.attempt is not None:
            parts.append(f"attempt {self.attempt}" + (f" on {self.offering}" if self.offering else ""))
        for count, word in ((self.interruptions, "interruption"), (self.failures, "failure")):
            if count:
                parts.append(f"{count} {word}" + ("s" if count > 1 else ""))
        return ", ".join(parts) + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True)
class Submission:
    """The answer to a submission: `is_new` unless the job was there already."""

    job: JobStatus
    is_new: bool
    note: str


@dataclass(frozen=True)
class JobApi:
    """Sends signed requests; what is not answered is sent again: every submission has a key, so none counts twice.

    `name` is that of the function: `plan_api` has a URL of its own, and answers `compare` alone.
    """

    url: str
    region: str
    credentials: Callable[[], Credentials]
    send: Send
    patience: Patience
    now: Callable[[], datetime]
    name: str = "job_api"

    def submit(self, definition: str, inputs: Mapping[str, str], key: str, image_tag: str = "") -> Submission:
        """Submit a job, which runs the image with that tag; the same key finds the same job.

        Raises:
            RefusedError, ActionError, UnavailableError: there is no job, or it is not known whether there is one.
        """
        asked = {"action": "submit", "definition": definition, "inputs": dict(inputs), "idempotency_key": key}
        asked |= {"image_tag": image_tag} if image_tag else {}
        answer = self._ask(asked)
        return Submission(_read_job(answer), answer.get("is_new") is True, _text(answer.get("note")))

    def plan(self, definition: str, inputs: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the plan of a job."""
        answer = self._ask({"action": "plan", "definition": definition, "inputs": dict(inputs)})
        plan = answer.get("plan")
        if not isinstance(plan, dict):
            raise _not_understood(200, self.name)
        return plan

    def compare(self, definitions: str | None, base: str | None) -> Mapping[str, Any]:
        """Return what a definition file changes of another one, and the plans of that; None is no file."""
        comparison = self._ask({"action": "compare", "definitions": definitions, "base": base}).get("comparison")
        if not isinstance(comparison, dict):
            raise _not_understood(200, self.name)
        return comparison

    def show(self, job_id: str) -> JobStatus:
        """Return a job."""
        return _read_job(self._ask({"action": "show", "job_id": job_id}))

    def cancel(self, job_id: str, reason: str) -> JobStatus:
        """Cancel a job; one that has ended stays as it is."""
        return _read_job(self._ask({"action": "cancel", "job_id": job_id, "reason": reason}))

    def _ask(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        body = json.dumps(asked).encode()
        return self.patience.insist(lambda: self._ask_once(body))

    def _ask_once(self, body: bytes) -> Mapping[str, Any]:
        # Signed anew each time: a signature is valid for five minutes.
        request = signed_post(self.url, body, self.credentials(), Scope(self.region, "lambda"), self.now())
        return _read_answer(self._respond(request), self.name)

    def _respond(self, request: Request) -> Response:
        try:
            return self.send(request)
        except NoResponseError as error:
            raise UnavailableError(f"{self.name} did not answer: {error}") from error


def _read_answer(response: Response, name: str) -> Mapping[str, Any]:
    answer = _read_json(response.body)
    error = answer.get("error") if answer else None
    if response.status >= _LOWEST_SERVER_ERROR:
        raise UnavailableError(f"{name} is not available: status {response.status}")
    if answer and isinstance(error, dict):
        raise RefusedError(_text(error.get("code")) or str(response.status), _text(error.get("message")))
    if response.status == _TOO_MANY_REQUESTS:
        raise UnavailableError(f"Lambda has no room for another call of {name} now (status 429)")
    if response.status == _FORBIDDEN:
        raise ActionError(
            "Lambda did not let this caller in (status 403): its role needs lambda:InvokeFunctionUrl and "
            f"lambda:InvokeFunction on the function {name}, as docs/job-api.md has it, and the input aws-region has to "
            f"be the stack's; Lambda says: {_read_message(answer or {})}"
        )
    if not answer or response.status not in (200, 201):
        raise _not_understood(response.status, name)
    return answer


def _read_job(answer: Mapping[str, Any]) -> JobStatus:
    job = answer.get("job")
    if not isinstance(job, dict) or not isinstance(job.get("is_final"), bool):
        raise _not_understood(200)
    texts = {name: job.get(name) for name in ("job_id", "state")}
    if not all(isinstance(text, str) and text for text in texts.values()):
        raise _not_understood(200)
    return JobStatus(
        job_id=job["job_id"],
        state=job["state"],
        is_final=job["is_final"],
        reason=_text(job.get("reason")),
        revision_arn=_text(job.get("revision_arn")),
        attempt=job["attempt"] if isinstance(job.get("attempt"), int) else None,
        offering=_text(job.get("offering")),
        interruptions=_count(job.get("interruptions")),
        failures=_count(job.get("failures")),
        cost=_describe_cost(job),
    )


def _describe_cost(job: Mapping[str, Any]) -> str:
    cost = job.get("cost_usd")
    return str(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else ""


def _read_json(body: bytes) -> Mapping[str, Any] | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _not_understood(status: int, name: str = "job_api") -> ActionError:
    output = "PlanApiUrl" if name == "plan_api" else "JobApiUrl"
    return ActionError(
        f"the answer (status {status}) is not one of {name}: the input url has to be the stack's output {output}, "
        "and the stack as new as this version of the action"
    )


def _read_message(answer: Mapping[str, Any]) -> str:
    """Return Lambda's own message, whose name is written either way."""
    return _text(answer.get("Message")) or _text(answer.get("message")) or "nothing"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
