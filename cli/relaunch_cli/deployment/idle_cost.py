"""What a deployment costs while nothing is trained, item by item."""

from collections.abc import Sequence
from dataclasses import dataclass

PRICES_OF = "us-east-1, 2026-11-23"
_MINUTES_OF_MONTH = 43_830
# Lambda polls a queue by five connections of 20 seconds (Lambda Developer Guide, "Using Lambda with Amazon SQS").
_POLLS_A_MINUTE = 15
_QUEUES = 5  # without those of uploads, of notices and of topics
# Reconcile counts the messages of six dead-letter queues every ten minutes, and of those of notices and of topics.
_COUNTS_A_MONTH = _MINUTES_OF_MONTH // 10
_COUNTED = 6
_FREE_REQUESTS = 1_000_000
_USD_PER_REQUEST = 0.40e-6
_USD_PER_SECRET = 0.40
_FREE_ALARMS = 10
_USD_PER_ALARM = 0.10


@dataclass(frozen=True, slots=True)
class IdleCost:
    """An item: USD a month in an account with its free allowances left, and in one that uses them up elsewhere."""

    what: str
    usd: float
    usd_without_allowances: float


def idle_costs(  # noqa: PLR0913 - each part has a price
    *,
    has_machines: bool,
    has_monitoring: bool,
    has_webhook: bool,
    has_uploads: bool,
    has_notices: bool = False,
    has_topics: bool = False,
    has_providers: bool = False,
) -> Sequence[IdleCost]:
    """Return the items of a deployment; network, cluster, roles, empty buckets and an empty repository cost nothing."""
    queues = _QUEUES + has_uploads + has_notices + has_topics
    counted = _COUNTED + has_notices + has_topics
    requests = queues * _POLLS_A_MINUTE * _MINUTES_OF_MONTH + counted * _COUNTS_A_MONTH
    items = [
        IdleCost(
            f"SQS: {requests / 1e6:.2f} million requests, which Lambda makes for {queues} queues",
            max(0, requests - _FREE_REQUESTS) * _USD_PER_REQUEST,
            requests * _USD_PER_REQUEST,
        )
    ]
    if has_webhook:
        items.append(IdleCost("Secrets Manager: the webhook's secret", _USD_PER_SECRET, _USD_PER_SECRET))
    if has_monitoring:
        # One of the two of machines is of capacity providers too.
        alarms = 16 + has_machines + (has_machines or has_providers) + 2 * has_webhook + has_notices
        dashboards = 2 + has_machines
        items += [
            IdleCost(
                f"CloudWatch: {alarms} alarms, of which ten are free",
                max(0, alarms - _FREE_ALARMS) * _USD_PER_ALARM,
                alarms * _USD_PER_ALARM,
            ),
            IdleCost(f"CloudWatch: dashboards ({dashboards}), of which three are free", 0.0, dashboards * 3.00),
        ]
    items.append(IdleCost("CloudWatch: four metrics always sent, of which ten are free", 0.0, 4 * 0.30))
    return items


def total(items: Sequence[IdleCost]) -> float:
    """Return USD a month, with the free allowances."""
    return sum(each.usd for each in items)
