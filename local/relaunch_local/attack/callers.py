"""Attacks of one caller of `job_api` on another: their keys, inputs and jobs stay their own, and their definitions."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

from relaunch.entrypoints.job_api import answer_request
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.stack import DEFINITION, AttackedStack

_ACCOUNT = "111122223333"
_CALLERS = (
    f"arn:aws:sts::{_ACCOUNT}:assumed-role/ci-vision/run-1",
    f"arn:aws:sts::{_ACCOUNT}:assumed-role/ci-text/run-1",
    f"arn:aws:sts::{_ACCOUNT}:assumed-role/ci-vision-2/ci-vision",
    f"arn:aws:iam::{_ACCOUNT}:user/ada",
    f"arn:aws:iam::{_ACCOUNT}:user/a:assumed-role/ci-vision/x",
    "arn:aws:sts::444455556666:assumed-role/ci-vision/run-1",
)
_GUARDED = replace(
    DEFINITION, name="guarded", callers=(f"arn:aws:iam::{_ACCOUNT}:role/relaunch/ci-vision", _CALLERS[3])
)
_NOBODY: tuple[object, ...] = (
    *({}, {"iam": {}}, {"iam": {"userArn": ""}}, {"iam": {"userArn": ["x"]}}, {"iam": None}, None),
)


def other_callers(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Let each caller use the keys and the jobs of each other one, and no caller at all."""
    stack = AttackedStack()
    tries = list(permutations(_CALLERS, 2))
    for number in range(max(min(count, 500), len(tries))):
        owner, other = tries[number] if number < len(tries) else dice.choice(tries)
        yield attempt(f"{number}: {other} against {owner}", partial(_attack, stack, owner, other, f"key-{number}"))
    stack.deps.definitions.save_definition(_GUARDED)
    for caller in (*_CALLERS, "invoke", "arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:user/ada/"):
        yield attempt(f"{caller} against a definition with callers", partial(_ask_for_guarded, stack, caller))
    for authorizer in _NOBODY:
        yield attempt(f"the authorizer {authorizer}", partial(_ask_as_nobody, stack, authorizer))


def _attack(stack: AttackedStack, owner: str, other: str, key: str) -> str | None:
    epochs = str(sum(key.encode()) % 900 + 100)
    submit = {"action": "submit", "definition": DEFINITION.name, "idempotency_key": key}
    first = _ask(stack, _signed_by(owner), {**submit, "inputs": {"epochs": epochs}})
    job_id = json.loads(first["body"])["job"]["job_id"]
    second = _ask(stack, _signed_by(other), {**submit, "inputs": {"epochs": "7"}})
    if second["statusCode"] != 201 or job_id in second["body"]:
        return f"the key of another caller was answered {second}"
    own = _ask(stack, _signed_by(owner), {**submit, "inputs": {"epochs": "8"}})
    if own["statusCode"] != 409 or epochs in own["body"].replace(job_id, ""):
        return f"a key used again with other inputs was answered {own}"
    for action in ("show", "cancel"):
        answer = _ask(stack, _signed_by(other), {"action": action, "job_id": job_id})
        unknown = _ask(stack, _signed_by(other), {"action": action, "job_id": "resnet-aaaaaaaaaaaa"})
        if answer["statusCode"] != unknown["statusCode"] or answer["statusCode"] != 404:
            return f"{action} of another caller's job was answered {answer}"
    job = stack.deps.jobs.load_job(job_id)
    return None if job is not None and not job.cancel_requested else "the job of another caller was cancelled"


def _ask_for_guarded(stack: AttackedStack, caller: str) -> str | None:
    before = len(stack.jobs())
    submitted = _ask(stack, _signed_by(caller), {"action": "submit", "definition": _GUARDED.name})
    planned = _ask(stack, _signed_by(caller), {"action": "plan", "definition": _GUARDED.name})
    statuses = submitted["statusCode"], planned["statusCode"]
    if caller in {_CALLERS[0], _CALLERS[3]}:
        return None if statuses == (201, 200) else f"a caller that is listed was answered {submitted}, {planned}"
    return None if statuses == (403, 403) and len(stack.jobs()) == before else f"was answered {submitted}, {planned}"


def _ask_as_nobody(stack: AttackedStack, authorizer: object) -> str | None:
    before = len(stack.jobs())
    answer = _ask(stack, authorizer, {"action": "submit", "definition": DEFINITION.name})
    return None if answer["statusCode"] == 401 and len(stack.jobs()) == before else f"was answered {answer}"


def _signed_by(arn: str) -> Mapping[str, Any]:
    return {"iam": {"userArn": arn}}


def _ask(stack: AttackedStack, authorizer: object, request: object) -> dict[str, Any]:
    stack.account.clock.advance(10.0)
    context = {"http": {"method": "POST"}, "authorizer": authorizer}
    event = {"version": "2.0", "requestContext": context, "body": json.dumps(request), "isBase64Encoded": False}
    return answer_request(event, f"request-{stack.account.clock.now()}", stack.deps)
