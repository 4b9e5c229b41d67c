"""Arrange the EventBridge rules of triggers around the registration of job definitions.

Rules are created before definitions are registered, and those that nobody needs any more are removed afterwards, once
the others have taken effect. So whenever it ends, every upload that an unchanged definition watches is selected, and
nothing is registered if a rule is refused.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.triggers.upload_rules import ChangedRule, RuleChange, compare_rules, wanted_rules
from relaunch.ports import DefinitionStore, TransientError, UploadRules

Change = TypeVar("Change")

MAX_PASSES = 6
EFFECT_SECONDS = 60.0  # PutRule: "Allow a short period of time for changes to take effect"; no number is documented


def plan_upload_rules(definitions: Iterable[JobDefinition], rules: UploadRules) -> tuple[ChangedRule, ...]:
    """Return how the rules differ from those that the definitions need; removals are last.

    In a stack that takes no uploads they need none.

    Raises:
        TransientError, PermanentError: the rules cannot be read.
    """
    watching = definitions if rules.takes_uploads else ()
    return compare_rules(wanted_rules(watching, rules.name_prefix), rules.list_rules())


def widen_upload_rules(
    definitions: Sequence[JobDefinition], rules: UploadRules, pause: Callable[[float], None]
) -> None:
    """Create rules until they select every upload that the definitions watch; remove none.

    Raises:
        TransientError: throttled, unreachable or changed by others, also after several passes.
        PermanentError: a rule is refused.
    """
    repeat(
        lambda: _without_removals(plan_upload_rules(definitions, rules)),
        lambda each: _carry_out(each, rules),
        pause,
        "rules of triggers",
    )


def settle_upload_rules(definitions: DefinitionStore, rules: UploadRules, pause: Callable[[float], None]) -> None:
    """Make the rules those of the registered definitions.

    Definitions and rules are read again after every change, until there is nothing to change: of several `apply` at the
    same time, whoever writes a rule last sees the definitions of all. Rules are removed only after a pause in which no
    other one was missing, so two `apply` do not remove each other's rules at the same time.

    Raises:
        TransientError: throttled, unreachable or changed by others, also after several passes.
        PermanentError: a rule is refused.
    """
    are_in_effect = False

    def plan() -> Sequence[ChangedRule]:
        nonlocal are_in_effect
        changes = plan_upload_rules(definitions.list_definitions(), rules)
        if missing := _without_removals(changes):
            are_in_effect = False
            return missing
        if changes and not are_in_effect:
            pause(EFFECT_SECONDS)
            are_in_effect = True
            return plan()
        return changes

    repeat(plan, lambda each: _carry_out(each, rules), pause, "rules of triggers")


def _without_removals(changes: Iterable[ChangedRule]) -> list[ChangedRule]:
    return [each for each in changes if each.change is not RuleChange.REMOVED]


def repeat(
    plan: Callable[[], Sequence[Change]],
    carry_out: Callable[[Change], None],
    pause: Callable[[float], None],
    what: str,
) -> None:
    """Carry out what is planned until nothing is; `what` is changed.

    Raises:
        TransientError: a call failed in the last of several passes, or others changed it in all of them.
        PermanentError: a change is refused.
    """
    for number in range(MAX_PASSES):
        if number > 1:  # the first pass changes, the second one finds it done, unless something is in the way
            pause(2.0 ** (number - 3))
        try:
            changes = plan()
            if not changes:
                return
            for each in changes:
                carry_out(each)
        except TransientError:
            if number + 1 == MAX_PASSES:
                raise
    raise TransientError(f"the {what} were changed by others {MAX_PASSES} times in a row")


def _carry_out(changed: ChangedRule, rules: UploadRules) -> None:
    if changed.change is RuleChange.REMOVED:
        rules.remove_rule(changed.rule.name)
    else:
        rules.put_rule(changed.rule)
