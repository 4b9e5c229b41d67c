"""Attacks of whoever has seen a signed delivery: the same body under invented headers."""

import copy
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from relaunch.core.triggers.dispatch_rate import MAX_STARTS_PER_HOUR
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import load_samples
from relaunch_local.attack.stack import AttackedStack, signed_headers, to_body

_SAMPLES = {
    # What may start: once, but for dispatches, which may be meant to be repeated.
    "github.push.json": 1,
    "github.release.published.json": 1,
    "github.workflow_run.completed.json": 1,
    "github.workflow_dispatch.json": MAX_STARTS_PER_HOUR,
    "github.repository_dispatch.json": MAX_STARTS_PER_HOUR,
}
_WITHOUT = {
    "github.push.json": ("repository", "pushed_at"),
    "github.release.published.json": ("release", "published_at"),
}


def replays(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Deliver each sample again and again within an hour, each time under another delivery ID and hook ID."""
    samples = load_samples()
    for name, most in _SAMPLES.items():
        payload = copy.deepcopy(samples[name])
        for without_time in (False, True) if name in _WITHOUT else (False,):
            if without_time:
                member, field = _WITHOUT[name]
                payload[member].pop(field, None)
            stack = AttackedStack()
            for number in range(min(count, 150)):
                what = f"{name}, number {number}{' without its time' if without_time else ''}"
                yield attempt(what, partial(_replay, stack, name.split(".")[1], payload, dice, most))


def _replay(stack: AttackedStack, event: str, payload: Any, dice: random.Random, most: int) -> str | None:
    body = to_body(payload)
    headers = {**signed_headers(event, body, f"{dice.getrandbits(128):032x}"), "x-github-hook-id": str(dice.random())}
    stack.messages.clear()
    stack.post(headers, body)
    for message in stack.messages:
        stack.handle(message)
    started = len(stack.jobs())
    return None if 1 <= started <= most else f"{started} jobs started"
