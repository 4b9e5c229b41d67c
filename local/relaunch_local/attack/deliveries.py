"""Attacks on the webhook: forged signatures, changed bodies, and JSON bombs."""

import hashlib
import hmac
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from relaunch.adapters.github.webhook_request import WANTED_EVENTS
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import bombs, event_of, load_samples, mutate
from relaunch_local.attack.stack import PREVIOUS_SECRET, SECRET, AttackedStack, sign, signed_headers, to_body

_REFUSED = frozenset((401, 413))
_ANSWERS_TO_SIGNED = frozenset((200, 202, 413, 415))

Forgery = Callable[[bytes, random.Random], dict[str, str]]


def forged_signatures(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Send deliveries that nobody signed with the secret: each is refused and none is queued."""
    stack = AttackedStack()
    samples = load_samples()
    for number in range(count):
        sample = dice.choice(sorted(samples))
        body = to_body(mutate(samples[sample], dice) if dice.random() < 0.5 else samples[sample])
        name, forge = dice.choice(_FORGERIES)
        headers = {"x-github-event": event_of(sample), **forge(body, dice)}
        yield attempt(f"{number}: {sample}, {name}", partial(send_unsigned, stack, headers, body))


def changed_bodies(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Change a body after it was signed, which is refused, or before, which costs nobody else anything."""
    stack = AttackedStack()
    samples = load_samples()
    for number in range(count):
        sample = dice.choice(sorted(samples))
        body = to_body(samples[sample])
        headers = signed_headers(event_of(sample), body, f"guid-{number}")
        changed = _flip(body, dice)
        yield attempt(
            f"{number}: {sample}, changed after it was signed", partial(send_unsigned, stack, headers, changed)
        )
        odd = to_body(mutate(samples[sample], dice))
        event = dice.choice((event_of(sample), dice.choice(sorted(WANTED_EVENTS))))
        yield attempt(f"{number}: {sample} as {event}, signed: {odd[:200]!r}", partial(send_signed, stack, event, odd))


def json_bombs(_dice: random.Random, count: int) -> Iterator[Attempt]:
    """Send bodies that are dear to read, unsigned and signed."""
    stack = AttackedStack()
    for what, body in islice(bombs(), count):
        yield attempt(f"{what}, unsigned", partial(send_unsigned, stack, {"x-github-event": "push"}, body))
        for event in ("push", "repository_dispatch"):
            yield attempt(f"{what} as {event}, signed", partial(send_signed, stack, event, body))


def send_unsigned(stack: AttackedStack, headers: dict[str, str], body: bytes) -> str | None:
    """Send a delivery that must be refused; return what happened instead."""
    stack.messages.clear()
    status = stack.post(headers, body)
    if stack.messages:
        return f"was queued, and answered {status}"
    return None if status in _REFUSED else f"was answered {status}"


def send_signed(stack: AttackedStack, event: str, body: bytes) -> str | None:
    """Send a delivery, and handle what is queued; return what must not happen.

    An exception other than a refusal is propagated: it would cost the other messages of its batch tries.
    """
    stack.messages.clear()
    status = stack.post(signed_headers(event, body, hashlib.sha256(body).hexdigest()[:32]), body)
    if status not in _ANSWERS_TO_SIGNED:
        return f"was answered {status}"
    for message in stack.messages:
        stack.handle(message)
    return None


def _flip(body: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(body))
    match dice.choice(("flip", "drop", "add", "end")):
        case "flip":
            return body[:place] + bytes([body[place] ^ 1 << dice.randrange(7)]) + body[place + 1 :]
        case "drop":
            return body[:place] + body[place + 1 :]
        case "add":
            return body[:place] + b" " + body[place:]
        case _:
            return body + dice.choice((b"\n", b" ", b"\0", b"{}"))


def _signed(name: str, change: Callable[[str], str]) -> tuple[str, Forgery]:
    return name, lambda body, _dice: {"x-hub-signature-256": change(sign(body))}


def _with_secret(name: str, secret: str) -> tuple[str, Forgery]:
    return name, lambda body, _dice: {"x-hub-signature-256": sign(body, secret)}


def _random_digest(_body: bytes, dice: random.Random) -> dict[str, str]:
    return {"x-hub-signature-256": f"sha256={dice.getrandbits(256):064x}"}


_FORGERIES: tuple[tuple[str, Forgery], ...] = (
    ("no signature", lambda _body, _dice: {}),
    ("a random signature", _random_digest),
    _with_secret("signed with no secret", ""),
    _with_secret("signed with another secret", "guessed"),
    _with_secret("signed with the secret and a newline", f"{SECRET}\n"),
    _with_secret("signed with the secret in lower case", SECRET.lower()),
    _with_secret("signed with None", "None"),
    _with_secret("signed with the secret replaced 27 hours ago", PREVIOUS_SECRET),
    _signed("upper case", str.upper),
    _signed("digits in upper case", lambda signature: f"sha256={signature[7:].upper()}"),
    _signed("no prefix", lambda signature: signature[7:]),
    _signed("another prefix", lambda signature: f"sha1={signature[7:]}"),
    _signed("two prefixes", lambda signature: f"sha256={signature}"),
    _signed("a space before", lambda signature: f" {signature}"),
    _signed("a newline after", lambda signature: f"{signature}\n"),
    _signed("a digit less", lambda signature: signature[:-1]),
    _signed("a digit more", lambda signature: f"{signature}0"),
    _signed("one digit changed", lambda signature: signature[:-1] + ("0" if signature[-1] != "0" else "1")),
    _signed(
        "other Unicode digits",
        lambda signature: signature.translate({48 + digit: 0xFF10 + digit for digit in range(10)}),
    ),
    _signed("two signatures", lambda signature: f"{signature[:-1]}0, {signature}"),
    (
        "only the SHA-1 signature",
        lambda body, _dice: {"x-hub-signature": f"sha1={hmac.digest(SECRET.encode(), body, 'sha1').hex()}"},
    ),
    (
        "the hash without a key",
        lambda body, _dice: {"x-hub-signature-256": f"sha256={hashlib.sha256(body).hexdigest()}"},
    ),
    ("that of an empty body", lambda _body, _dice: {"x-hub-signature-256": sign(b"")}),
)
