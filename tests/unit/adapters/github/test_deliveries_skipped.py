"""Pushes for which GitHub starts no workflow."""

import json
from typing import Any

import pytest

from fakes.webhook import load_event
from relaunch.adapters.github.payload_trimming import trim_payload
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.triggers.events import Push

PUSH = load_event("github.push")


def skip_of(payload: Any) -> str:
    message = {"source": "github", "event": "push", "delivery": "guid-1", "body_sha256": "ab", "payload": payload}
    (push,) = parse_intake_message(json.dumps(message))
    assert isinstance(push, Push)
    return push.skip


@pytest.mark.parametrize(
    ("message", "skip"),
    [
        *((f"Release 2.1 {words}\n\nNo change", words) for words in ("[skip ci]", "[ci skip]", "[no ci]")),
        *((f"Release 2.1\n\n{words}", words) for words in ("[skip actions]", "[actions skip]")),
        ("Release 2.1\n\n\nskip-checks: true\n", "skip-checks: true"),
        ("Release 2.1\n\n\nskip-checks:true", "skip-checks:true"),
        ("Say what skip-checks: true does", ""),
        ("Teach skip ci to the parser", ""),
        (None, ""),
    ],
)
def test_a_push_is_skipped_by_the_message_of_its_newest_commit_alone(message: str | None, skip: str) -> None:
    older = [{**PUSH["commits"][0], "message": "Older [skip ci]"}, *PUSH["commits"]]
    payload = {**PUSH, "commits": older, "head_commit": {**PUSH["head_commit"], "message": message}}

    assert skip_of(payload) == skip
    assert skip_of(trim_payload(payload)) == skip


def test_a_message_that_is_long_does_not_stay_in_what_is_trimmed() -> None:
    payload = {**PUSH, "head_commit": {**PUSH["head_commit"], "message": "[no ci]" + "x" * 1_000_000}}

    assert trim_payload(payload)["head_commit"] == {"id": PUSH["after"], "message": "[no ci]"}
