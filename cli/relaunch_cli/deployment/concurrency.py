"""Decides how much of the account's Lambda concurrency a deployment reserves for what a flood must not starve.

A reservation is a floor and a ceiling: a function has that much in any case, and no more. Source: "Configuring reserved
concurrency for a function", AWS Lambda Developer Guide.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# Lambda refuses a reservation that leaves less than this to the other functions of the account.
LEAST_UNRESERVED = 100
# "Concurrent executions" of the service `lambda`.
QUOTA_CODE = "L-B99A9384"
# What Lambda gives to accounts that are not new ("Lambda quotas").
DEFAULT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Reservation:
    """What to reserve for a function: `most` if possible, and less than `least` would do more harm than good."""

    parameter: str
    function: str
    least: int
    most: int


# In order of importance. observe_capacity needs as much as its event source mapping runs at once (MaximumConcurrency):
# with less, Lambda would throttle it, and a throttled warning is tried again a minute later. Deliveries that do not fit
# are answered 429, and GitHub does not deliver again: below five, a push of several branches would lose some.
RESERVATIONS = (
    Reservation("WarningsReservedConcurrency", "ObserveCapacityFunction", least=10, most=10),
    Reservation("WebhookReservedConcurrency", "GithubWebhookFunction", least=5, most=20),
)


@dataclass(frozen=True, slots=True)
class Account:
    """The account's limit of concurrent executions, and how many of them no function has reserved."""

    limit: int
    unreserved: int


@dataclass(frozen=True, slots=True)
class ReservationPlan:
    """Parameters of the stack, and what to tell whoever deploys."""

    parameters: Mapping[str, int]
    notes: tuple[str, ...]


def plan_reservations(account: Account, present: Mapping[str, int], given: Mapping[str, int]) -> ReservationPlan:
    """Decide on the parameters that are not given.

    `present` are the reservations that the stack has now, `given` the values that the user names; both by parameter. A
    function may keep its own present reservation and take what nobody has reserved, but not what another function
    gives back: CloudFormation updates both at once. What is reserved is never made less.
    """
    free = account.unreserved - LEAST_UNRESERVED
    free -= sum(given[name] - present.get(name, 0) for name in given)
    planned: dict[str, int] = {}
    missing = 0
    for each in RESERVATIONS:
        if each.parameter in given:
            continue
        own = present.get(each.parameter, 0)
        reachable = min(each.most, own + free)
        amount = max(own, reachable) if reachable >= each.least else own
        planned[each.parameter] = amount
        free -= amount - own
        missing += max(each.most - amount, 0)
    return ReservationPlan(planned, _notes(account, planned, account.limit + missing - free if missing else 0))


def _notes(account: Account, planned: Mapping[str, int], wanted_limit: int) -> tuple[str, ...]:
    shown = ", ".join(f"{name}={amount}" for name, amount in planned.items())
    notes = [f"reserved concurrency: {shown}"] if planned else []
    if wanted_limit:
        notes.append(
            f"the account runs {account.limit} functions at once, {account.unreserved} of them unreserved, and Lambda "
            f"keeps {LEAST_UNRESERVED} unreserved: too little to reserve all that spot warnings and the webhook should "
            f"have in a flood; ask for {wanted_limit} or more, then deploy again: {request_of(wanted_limit)}"
        )
    return tuple(notes)


def request_of(limit: int) -> str:
    """Return how to ask for a limit of at least so many concurrent executions.

    Service Quotas refuses what is not above the default, also where the account has less ("You must provide a quota
    value greater than the default quota value of 1000.0", users' reports); AWS Support takes a case for less.
    """
    command = (
        f"aws service-quotas request-service-quota-increase --service-code lambda --quota-code {QUOTA_CODE} "
        f"--desired-value {max(limit, DEFAULT_LIMIT + 1)}"
    )
    if limit > DEFAULT_LIMIT:
        return command
    return f"{command} (it takes no less), or a case at AWS Support for {limit}"
