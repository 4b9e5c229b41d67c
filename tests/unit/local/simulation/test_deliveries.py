import hashlib
import json
from dataclasses import replace

import pytest

from fakes.builders import make_definition
from relaunch.adapters.github.deliveries import parse_delivery
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.triggers.matching import IgnoredEvent, Match, match
from relaunch_local.simulation.deliveries import event_name, payload_of, useless_payload
from relaunch_local.simulation.scenario import PlannedEvent
from relaunch_local.simulation.trigger_scenario import GITHUB_KINDS, triggers_of

NAME = "resnet"
DEFINITION = make_definition(
    name=NAME,
    triggers=(GithubTrigger(f"acme/{NAME}", "push", branches=("main",)), *triggers_of(make_definition(name=NAME))),
)


def read(kind: str, payload: dict[str, object], delivery: str) -> object:
    body = json.dumps(payload)
    message = {
        "source": "github",
        "event": event_name(kind),
        "delivery": delivery,
        "body_sha256": hashlib.sha256(body.encode()).hexdigest(),
        "payload": payload,
    }
    return parse_delivery(message)


def planned(kind: str) -> PlannedEvent:
    token = "5e" * 20 if kind in {"push", "tag"} else "123456789012"
    return PlannedEvent(0.0, kind, NAME, token)


def starts(event: object) -> bool:
    found = isinstance(event, IgnoredEvent) or match(DEFINITION, event, lambda _pattern, _value: True)  # type: ignore[arg-type]
    return isinstance(found, Match)


@pytest.mark.parametrize("kind", ["push", *GITHUB_KINDS])
def test_each_delivery_starts_a_job_that_is_known_by_its_token(kind: str) -> None:
    event = planned(kind)
    found = read(kind, payload_of(event, {}), f"delivery-{event.token}")

    assert starts(found)
    assert event.token in found.identity  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", GITHUB_KINDS)
def test_the_delivery_beside_it_starts_nothing(kind: str) -> None:
    assert not starts(read(kind, useless_payload(planned(kind)), "beside"))


@pytest.mark.parametrize("kind", [kind for kind in GITHUB_KINDS if kind != "package"])
def test_what_happens_again_is_another_event(kind: str) -> None:
    events = [replace(planned(kind), occurrence=number) for number in (1, 2)]
    first, second = (read(kind, payload_of(each, {}), f"delivery-{each.occurrence}") for each in events)

    assert first.identity != second.identity  # type: ignore[attr-defined]
