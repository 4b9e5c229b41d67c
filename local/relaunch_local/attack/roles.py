"""Attacks of whoever has a role of one stack on the other stacks of the account, as their policies are evaluated."""

import random
import string
from collections.abc import Iterator
from functools import cache, partial

from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.separation import check_name
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.neighbours import NAMES, SHARED, deployed, reached_by, senders, somebody
from relaunch_local.iam.permission import ContextValue
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.iam.reach import allowed, authorizer_of, expected_values, may_reach
from relaunch_local.iam.reference import actions_like
from relaunch_local.templates.deployed import DeployedStacks

_MOST_NEIGHBOURS = 60
"""Names of other stacks that are drawn: each is deployed once, which takes longer than the attempts on it."""
_SERVICES = (
    *("cloudformation", "dynamodb", "ec2", "ecr", "ecs", "events", "iam", "kms", "lambda", "logs", "s3"),
    *("secretsmanager", "sqs"),
)
_SUFFIX_LENGTH = 12


def foreign_resources(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Use every role for drawn actions on drawn resources of other stacks, with drawn condition keys.

    First of all stacks whose names begin alike reach nothing of each other, whatever is drawn.
    """
    for one, longer in (NAMES[:2], NAMES[2:]):
        yield attempt(f"the roles of {one} in {longer}", partial(_reach_all, deployed(one), deployed(longer)))
        yield attempt(f"the roles of {longer} in {one}", partial(_reach_all, deployed(longer), deployed(one)))
    neighbours = _draw_names(dice, min(_MOST_NEIGHBOURS, count))
    for _ in range(count):
        own_name = dice.choice(NAMES)
        other_name = dice.choice([each for each in neighbours if each != own_name])
        own = deployed(own_name)
        other = deployed(other_name)
        if dice.random() < 1 / 20:
            yield attempt(f"rules of {other_name} to queues of {own_name}", partial(_send, own, other))
        else:
            yield _draw_request(dice, own, other)


def _draw_names(dice: random.Random, count: int) -> list[str]:
    """Return names of stacks that may be deployed, most of which begin with that of another one."""
    names = [*NAMES]
    while len(names) < count:
        letters = "".join(dice.choices(string.ascii_letters + string.digits + "-", k=dice.randint(1, 12)))
        name = f"{dice.choice(NAMES)}{dice.choice(('-', '-', ''))}{letters}".strip("-")
        try:
            check_name(name)
        except RefusedError:
            continue
        if name not in names:
            names.append(name)
    return names


def _draw_request(dice: random.Random, own: DeployedStacks, other: DeployedStacks) -> Attempt:
    role = dice.choice(sorted(own.roles))
    statements = list(allowed(own.roles[role]))
    action, statement = dice.choice(statements)
    chosen = expected_values(statement)
    if dice.random() < 1 / 4:
        service = dice.choice(_SERVICES)
        action = dice.choice(_actions_of(service))
    # Half of them have values that no condition of the role expects.
    if dice.random() < 1 / 2:
        chosen |= {key: _draw_value(dice, own, other) for key in chosen if dice.random() < 1 / 2}
    service = action.partition(":")[0]
    arn = _draw_arn(dice, service, other)
    what = f"{own.name} {role}: {action} on {arn} with {sorted(chosen)}"
    return attempt(what, partial(_ask, own, other, role, action, arn, chosen))


def _draw_value(dice: random.Random, own: DeployedStacks, other: DeployedStacks) -> ContextValue:
    one = dice.choice((own.name, other.name, own.cluster, other.cluster, dice.choice(other.arns), "", "*"))
    return dice.choice((one, None))


def _draw_arn(dice: random.Random, service: str, other: DeployedStacks) -> str:
    """Return an ARN of another stack, half of them with another end: names and IDs are AWS's to give."""
    arn = dice.choice([each for each in other.arns if each.split(":")[2] == service] or other.arns)
    is_named = len(arn) > _SUFFIX_LENGTH and other.name in arn[:-_SUFFIX_LENGTH].split(":", 5)[-1]
    if is_named and dice.random() < 1 / 2:
        return arn[:-_SUFFIX_LENGTH] + "".join(dice.choices(string.ascii_uppercase + string.digits, k=_SUFFIX_LENGTH))
    return arn


@cache
def _actions_of(service: str) -> list[str]:
    return actions_like(f"{service}:*")


@cache
def _authorizer(name: str, role: str) -> PolicyAuthorizer:
    return authorizer_of(deployed(name).roles[role])


def _ask(
    own: DeployedStacks,
    other: DeployedStacks,
    role: str,
    action: str,
    arn: str,
    chosen: dict[str, ContextValue],
) -> str | None:
    is_reached = may_reach(action, arn, chosen, somebody(other), _authorizer(own.name, role))
    if (role, action) in SHARED or not is_reached:
        return None
    return f"{role} of {own.name} may {action} on {arn}"


def _reach_all(own: DeployedStacks, other: DeployedStacks) -> str | None:
    found = [(role, each) for role in own.roles for each in reached_by(role, own, other)]
    if found:
        role, reached = found[0]
        return f"{role} of {own.name} may {reached.action} on {reached.resource}, and {len(found) - 1} more"
    return _send(own, other)


def _send(own: DeployedStacks, other: DeployedStacks) -> str | None:
    sent = next((each for policy in own.queue_policies.values() for each in senders(policy, own, other)), None)
    return f"{sent.action} to {sent.resource}" if sent else None
