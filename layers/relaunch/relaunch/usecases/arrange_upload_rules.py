"""Arrange the EventBridge rules for uploads around the registration of job definitions.

Rules are widened before definitions are registered and narrowed afterwards, so that no upload is missed while a
definition changes, and nothing is registered if a rule is refused.
"""

from collections.abc import Callable, Iterable, Sequence

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.triggers.upload_rules import ChangedRule, RuleChange, compare_rules, wanted_rules
from relaunch.ports import DefinitionStore, TransientError, UploadRules

MAX_PASSES = 6


def plan_upload_rules(definitions: Iterable[JobDefinition], rules: UploadRules) -> tuple[ChangedRule, ...]:
    """Return how the rules differ from those that the definitions need; removals are last.

    Raises:
        TransientError, PermanentError: the rules cannot be read.
    """
    return compare_rules(wanted_rules(definitions, rules.name_prefix), rules.list_rules())


def widen_upload_rules(
    definitions: Sequence[JobDefinition], rules: UploadRules, pause: Callable[[float], None]
) -> None:
    """Create and replace rules until they select every upload that the definitions watch; remove none.

    Raises:
        TransientError: throttled, unreachable or changed by others, also after several passes.
        PermanentError: a rule is refused.
    """
    _repeat(lambda: [each for each in plan_upload_rules(definitions, rules) if each.rule.pattern], rules, pause)


def settle_upload_rules(definitions: DefinitionStore, rules: UploadRules, pause: Callable[[float], None]) -> None:
    """Make the rules those of the registered definitions.

    Definitions and rules are read again after every change, until there is nothing to change: of several `apply` at the
    same time, whoever writes a rule last sees the definitions of all.

    Raises:
        TransientError: throttled, unreachable or changed by others, also after several passes.
        PermanentError: a rule is refused.
    """
    _repeat(lambda: plan_upload_rules(definitions.list_definitions(), rules), rules, pause)


def _repeat(plan: Callable[[], Sequence[ChangedRule]], rules: UploadRules, pause: Callable[[float], None]) -> None:
    for number in range(MAX_PASSES):
        if number > 1:  # the first pass changes, the second one finds it done, unless something is in the way
            pause(2.0 ** (number - 3))
        try:
            changes = plan()
            if not changes:
                return
            for each in changes:
                _carry_out(each, rules)
        except TransientError:
            if number + 1 == MAX_PASSES:
                raise
    raise TransientError(f"the rules for uploads were changed by others {MAX_PASSES} times in a row")


def _carry_out(changed: ChangedRule, rules: UploadRules) -> None:
    if changed.change is RuleChange.REMOVED:
        rules.remove_rule(changed.rule.name)
    else:
        rules.put_rule(changed.rule)
