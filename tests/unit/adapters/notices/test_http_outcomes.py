"""What each service's refusals become, by the table of them."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.notice_receivers import BY_TOKEN, REFUSALS, ReceiverServices, Refusal
from relaunch.ports.notices import Delivered, Postponed, Refused
from unit.adapters.notices.conftest import make_notice, make_receiver

CASES = [
    pytest.param(kind, refusal, id=f"{kind} {name}")
    for kind, refusals in {**REFUSALS, "token": BY_TOKEN}.items()
    for name, refusal in refusals.items()
]
SECRETS = ("secret", "xoxb", "whsec")


@pytest.mark.parametrize(("kind", "refusal"), CASES)
def test_a_refusal_is_for_good_or_for_a_while_and_repeats_no_secret(
    services: ReceiverServices, kind: str, refusal: Refusal
) -> None:
    services.refusals = [refusal]

    outcome = make_receiver(services, kind).deliver(make_notice(), "")

    assert type(outcome).__name__ == refusal.outcome
    assert isinstance(outcome, Postponed | Refused)
    if isinstance(outcome, Postponed):
        seconds = refusal.retry_seconds
        assert outcome.retry_at == (None if seconds is None else NOW + timedelta(seconds=seconds))
    assert not any(each in outcome.reason for each in SECRETS)
    assert refusal.page.startswith("https://")


@pytest.mark.parametrize("kind", ["slack", "token", "teams", "discord", "webhook"])
def test_what_is_taken_is_delivered(services: ReceiverServices, kind: str) -> None:
    assert isinstance(make_receiver(services, kind).deliver(make_notice(), ""), Delivered)
    assert len(services.requests) == 1
