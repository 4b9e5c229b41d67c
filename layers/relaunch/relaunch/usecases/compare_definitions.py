"""Compare the definitions of a file that is not applied with those of another one, and plan what differs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from relaunch.core.definitions.changes import MAX_PLANS, ChangeKind, KeyChange, find_changes, kind_of_change
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.records import dataclass
from relaunch.ports import RequestDependencies
from relaunch.usecases.plan_jobs import Plan, plan_jobs, refuse_unmeasured_deadlines
from relaunch.usecases.submit_job import definition_problem

_PLANNED = (ChangeKind.ADDED, ChangeKind.CHANGED)

WriteKeys = Callable[[JobDefinition], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class ComparedDefinition:
    """What becomes of a definition; `plan` is None for what is removed, unchanged, or beyond the plans of a request."""

    name: str
    kind: ChangeKind
    changes: Sequence[KeyChange]
    plan: Plan | None = None


def compare_definitions(
    proposed: Sequence[JobDefinition], base: Sequence[JobDefinition], write_keys: WriteKeys, deps: RequestDependencies
) -> list[ComparedDefinition]:
    """Return what becomes of each definition of two files, and the plans of those that are new or changed.

    Nothing is stored or launched, and what is registered is not looked at. `write_keys` returns the keys of a
    definition as a file has them.

    Raises:
        TransientError: prices or a revision are temporarily unavailable.
    """
    compared = list(_compare(proposed, base, write_keys))
    wanted = [each.name for each in compared if each.kind in _PLANNED][:MAX_PLANS]
    by_name = {each.name: each for each in proposed}
    planned = refuse_unmeasured_deadlines(plan_jobs([by_name[name] for name in wanted], deps))
    plans = {each.definition.name: each for each in planned}
    return [replace(each, plan=_with_problem(plans.get(each.name), deps)) for each in compared]


def _compare(
    proposed: Sequence[JobDefinition], base: Sequence[JobDefinition], write_keys: WriteKeys
) -> Iterator[ComparedDefinition]:
    before = {each.name: write_keys(each) for each in base}
    after = {each.name: write_keys(each) for each in proposed}
    for name in [*after, *(name for name in before if name not in after)]:
        kind = kind_of_change(before.get(name), after.get(name))
        changes = find_changes(before.get(name, {}), after.get(name, {})) if kind is not ChangeKind.REMOVED else ()
        yield ComparedDefinition(name, kind, changes)


def _with_problem(plan: Plan | None, deps: RequestDependencies) -> Plan | None:
    """Return the plan with what the stack refuses about its definition, which a submission would be refused for."""
    return plan and replace(plan, problem=definition_problem(plan.definition, deps) or plan.problem)
