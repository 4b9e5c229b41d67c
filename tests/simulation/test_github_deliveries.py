"""What the webhook refuses for hours is brought back by the sweep where a token is stored, else by a person."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from relaunch.core.triggers import failed_deliveries
from relaunch.core.triggers.failed_deliveries import DeliveryAttempt
from relaunch.entrypoints.webhook import handle_request
from relaunch.usecases import sweep_deliveries
from relaunch_local.simulation import workload
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedResult, SeedRun
from relaunch_local.simulation.workload import Workload
from simulation.planting import patched

SEED = 2
OUTAGE = timedelta(minutes=180)
# The webhook refuses although nothing is away that the simulated account knows.
LATE = "what GitHub sends is taken in time"


def run_in_outage(
    share_with_token: float, monkeypatch: pytest.MonkeyPatch, begins_after: timedelta = timedelta(0)
) -> tuple[SeedRun, SeedResult]:
    """Run a seed in whose first three hours the webhook answers 503, from some time on."""
    monkeypatch.setattr(Workload, "share_with_token", share_with_token)
    run = SeedRun(SEED, Options(calm_limit=timedelta(hours=12)))
    started_at = run.account.started_at

    def refuse(*arguments: Any) -> dict[str, object]:
        is_away = begins_after <= run.account.clock.now() - started_at < OUTAGE
        return {"statusCode": 503, "body": "{}"} if is_away else handle_request(*arguments)

    monkeypatch.setattr(workload, "handle_request", refuse)
    return run, run.run()


def delays(run: SeedRun) -> dict[str, timedelta]:
    """Return how long after the outage each delivery that met it was accepted."""
    over_at = run.account.started_at + OUTAGE
    attempts = [each for listed in run.workload.github.github.attempts.values() for each in listed]
    refused = {each.guid for each in attempts if not each.is_accepted}
    accepted: dict[str, datetime] = {}
    for each in attempts:
        if each.is_accepted and each.guid in refused:
            accepted.setdefault(each.guid, each.delivered_at)
    return {guid: at - over_at for guid, at in accepted.items()}


def test_after_an_outage_of_three_hours_the_sweep_has_brought_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    run, result = run_in_outage(1.0, monkeypatch)

    assert [each for each in result.violations if LATE not in each] == []
    assert run.workload.accepted == run.workload.planned
    assert result.happened["github-asked-again"] > 0
    # Half an hour, and twice as long where GitHub does not answer a pass; or a quarter of the delivery's age.
    assert max(delays(run).values()) < timedelta(hours=2)


def test_without_a_token_a_person_brings_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    run, result = run_in_outage(0.0, monkeypatch)

    assert [each for each in result.violations if LATE not in each] == []
    assert run.workload.accepted == run.workload.planned
    assert result.happened["github-asked-again"] == 0
    assert delays(run)


def asks_for_nothing(decide: Callable[..., Any]) -> Callable[..., Any]:
    def decided(*arguments: Any, **named: Any) -> Any:
        decision = decide(*arguments, **named)
        return failed_deliveries.SweepDecision((), decision.postponed, decision.lost, decision.progress)

    return decided


def asks_for_all(_decide: Callable[..., Any]) -> Callable[..., Any]:
    def decided(attempts: Any, progress: Any, now: datetime, **named: Any) -> Any:
        del now, named
        return failed_deliveries.SweepDecision(tuple(attempts), 0, (), progress)

    return decided


@pytest.mark.parametrize(
    ("breaks", "invariant"),
    [
        (asks_for_nothing, "what the webhook could not take is delivered again"),
        (asks_for_all, "nothing is asked for that the webhook has taken"),
    ],
)
def test_a_sweep_that_asks_for_the_wrong_deliveries_is_seen(
    breaks: Callable[[Callable[..., Any]], Callable[..., Any]], invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = breaks(failed_deliveries.decide_redeliveries)
    with patched(sweep_deliveries, decide_redeliveries=decide):
        _, result = run_in_outage(1.0, monkeypatch, begins_after=timedelta(minutes=40))

    assert any(invariant in each for each in result.violations), result.violations


def test_a_sweep_that_counts_an_outage_as_tries_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with patched(DeliveryAttempt, is_refused=property(lambda attempt: not attempt.is_accepted)):
        _, result = run_in_outage(1.0, monkeypatch)

    assert any("what the webhook could not take is delivered again" in each for each in result.violations)
