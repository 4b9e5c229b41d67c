"""Arrange the schedules of EventBridge Scheduler around the registration of job definitions, as the rules are.

Schedules are created before definitions are registered, and those that nobody needs any more are removed afterwards. A
schedule that nobody needs yet or any more sends times that start nothing.
"""

from collections.abc import Callable, Iterable, Sequence

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.triggers.schedules import ChangedSchedule, compare_schedules, wanted_schedules
from relaunch.core.triggers.upload_rules import RuleChange
from relaunch.ports import DefinitionStore, PermanentError, Schedules, TransientError
from relaunch.usecases.arrange_upload_rules import repeat


def plan_schedules(definitions: Iterable[JobDefinition], schedules: Schedules) -> tuple[ChangedSchedule, ...]:
    """Return how the schedules differ from those that the definitions need; removals are last.

    Raises:
        TransientError, PermanentError: the schedules cannot be read.
    """
    if not schedules.takes_schedules:
        return ()
    return compare_schedules(wanted_schedules(definitions), schedules.list_schedules())


def are_left_behind(schedules: Schedules, note: Callable[[str], None]) -> bool:
    """Return whether the group has schedules although no definition has one: those of an `apply` that was cut short.

    Whoever has no schedule needs no permission for them, and is held up by nothing: what cannot be read now is noted.
    """
    try:
        return schedules.takes_schedules and bool(schedules.list_schedules())
    except TransientError as error:
        note(f"{error}; what an `apply` that was cut short left there stays until the next one")
    except PermanentError:
        pass
    return False


def add_schedules(definitions: Sequence[JobDefinition], schedules: Schedules, pause: Callable[[float], None]) -> None:
    """Create and replace schedules until every one is there that the definitions need; remove none.

    Raises:
        TransientError: throttled, unreachable or changed by others, also after several passes.
        PermanentError: a schedule is refused.
    """

    def plan() -> Sequence[ChangedSchedule]:
        changes = plan_schedules(definitions, schedules)
        return [each for each in changes if each.change is not RuleChange.REMOVED]

    repeat(plan, lambda each: _carry_out(each, schedules), pause, "schedules")


def settle_schedules(definitions: DefinitionStore, schedules: Schedules, pause: Callable[[float], None]) -> None:
    """Make the schedules those of the registered definitions, which are read again after every change.

    So of several `apply` at the same time, whoever writes a schedule last sees the definitions of all.

    Raises:
        TransientError: throttled, unreachable or changed by others, also after several passes.
        PermanentError: a schedule is refused.
    """
    repeat(
        lambda: plan_schedules(definitions.list_definitions(), schedules),
        lambda each: _carry_out(each, schedules),
        pause,
        "schedules",
    )


def _carry_out(changed: ChangedSchedule, schedules: Schedules) -> None:
    if changed.change is RuleChange.REMOVED:
        schedules.remove_schedule(changed.schedule.name)
    else:
        schedules.put_schedule(changed.schedule)
