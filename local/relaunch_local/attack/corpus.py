"""Attacks with the files of a folder, which nobody here chose."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from relaunch.adapters.github.webhook_request import WANTED_EVENTS
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.definition_files import read
from relaunch_local.attack.deliveries import send_signed, send_unsigned
from relaunch_local.attack.messages import HANDLERS, handle_by
from relaunch_local.attack.stack import AttackedStack, sign

_MAX_BYTES = 30_000_000
_MAX_MESSAGE_BYTES = 1_048_576  # the limit of SQS


def files_of(folder: Path, _dice: random.Random, _count: int) -> Iterator[Attempt]:
    """Send each file as every kind of delivery, forged and signed, and to every queue; read it as a definition file."""
    stack = AttackedStack()
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        name = str(file.relative_to(folder))
        body = file.read_bytes()[:_MAX_BYTES]
        forged = {"x-hub-signature-256": sign(body, "guessed")}
        for event in sorted({*WANTED_EVENTS, "ping", name.split(".", maxsplit=1)[0]}):
            headers = {"x-github-event": event, **forged}
            yield attempt(f"{name} as {event}, forged", partial(send_unsigned, stack, headers, body))
            yield attempt(f"{name} as {event}, signed", partial(send_signed, stack, event, body))
        text = body.decode("utf-8", "surrogateescape")
        for queue in HANDLERS:
            message = text[:_MAX_MESSAGE_BYTES]
            yield attempt(f"{name} to the queue {queue}", partial(handle_by, stack, queue, message))
        yield attempt(f"{name} as a definition file", partial(read, text))
