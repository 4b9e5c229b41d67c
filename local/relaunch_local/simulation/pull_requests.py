"""Pull requests that change the file of definitions: a workflow asks `plan_api` what would change, and asks again."""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from relaunch.adapters.definition_file.writer import write_definitions
from relaunch.core.definitions.definition import JobDefinition
from relaunch.entrypoints.plan_api import answer_plan_request
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.workload import Workload

_SHARE_OF_SEEDS = 0.15
_MOST = 4
_AGAIN_SECONDS = (5.0, 120.0)
_NEW = "new"


class PullRequests:
    """Has pull requests planned while there are faults."""

    def __init__(self, account: SimulatedAccount, workload: Workload) -> None:
        """Schedule the requests of some seeds."""
        self._account = account
        self._workload = workload
        self._dice = account.chance.stream("pull-requests")
        if self._dice.random() < _SHARE_OF_SEEDS:
            for _ in range(self._dice.randint(1, _MOST)):
                seconds = self._dice.uniform(0.05, 1.0) * account.scenario.chaos_seconds
                account.clock.call_later(seconds, self._open)

    def _open(self) -> None:
        base = [_plain(each) for each in self._account.scenario.definitions]
        proposed, kinds = _change(self._dice, base)
        request = {
            "action": "compare",
            # Without a definition a file is invalid: it is deleted.
            "definitions": write_definitions(proposed) if proposed else None,
            "base": self._dice.choice((write_definitions(base), None)),
        }
        if request["base"] is None:
            kinds = dict.fromkeys((each.name for each in proposed), "added")
        self._ask(request, kinds)

    def _ask(self, request: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
        account = self._account

        def on_end(answer: Any, error: BaseException | None) -> None:
            if error is None:
                self._check(answer, kinds)
                return
            self._workload.expect("plan_api", error)
            if not account.chance.is_calm:
                account.clock.call_later(self._dice.uniform(*_AGAIN_SECONDS), partial(self._ask, request, kinds))

        account.lambdas.call("plan_api", lambda: answer_plan_request(request, account.deps), on_end, "compare")

    def _check(self, answer: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
        """Check that the answer has what was changed, and a plan of whatever may run."""
        found = {each["definition"]: each for each in answer.get("comparison", {}).get("definitions", ())}
        found_kinds = {name: each["kind"] for name, each in found.items()}
        message = f"{found_kinds}, not {dict(kinds)}: {str(answer)[:200]}"
        self._account.invariants.check("a comparison has what a pull request changes", found_kinds == kinds, message)
        unplanned = [name for name in kinds if _is_planned(kinds[name]) != bool(found.get(name, {}).get("plan"))]
        self._account.invariants.check("what a pull request changes has a plan", not unplanned, f"{unplanned}")


def _is_planned(kind: str) -> bool:
    return kind in ("added", "changed")


def _plain(definition: JobDefinition) -> JobDefinition:
    """Return a definition as a file may have it that says no more than what its jobs need."""
    return JobDefinition(
        definition.name,
        definition.task_definition,
        definition.accelerator,
        purchase=definition.purchase,
        max_failures=definition.max_failures,
    )


def _change(dice: random.Random, definitions: list[JobDefinition]) -> tuple[list[JobDefinition], Mapping[str, str]]:
    """Return the definitions with one that is changed, added or removed, and what becomes of each."""
    kinds = dict.fromkeys((each.name for each in definitions), "unchanged")
    chosen = dice.choice(definitions)
    kind = dice.choice(("changed", "added", "removed"))
    if kind == "added":
        return [*definitions, replace(chosen, name=_NEW)], {**kinds, _NEW: "added"}
    others = [each for each in definitions if each is not chosen]
    kinds[chosen.name] = kind
    if kind == "removed":
        return others, kinds
    changed = replace(chosen, max_failures=chosen.max_failures + 1)
    return [changed if each is chosen else each for each in definitions], kinds
