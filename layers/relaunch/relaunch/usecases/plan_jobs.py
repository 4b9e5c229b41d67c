"""Tell where jobs of definitions would run now: nothing is launched and nothing is stored."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.definition import JobDefinition
from relaunch.core.definition_rules import container_problem
from relaunch.core.revision import Revision
from relaunch.core.selection import Selection, explain_rejection, select
from relaunch.ports import NoActiveRevisionError, World
from relaunch.usecases.survey_market import survey_market


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job of this definition would find at `at`.

    `problem` says why it can never run, empty when it can; `is_unsatisfiable` tells that no offering will do.
    """

    definition: JobDefinition
    at: datetime
    revision: Revision | None
    selection: Selection | None
    problem: str = ""
    is_unsatisfiable: bool = False


def plan_jobs(definitions: Iterable[JobDefinition], world: World) -> list[Plan]:
    """Hold every definition against its newest revision and the present offerings.

    Raises:
        TransientError: a price or a revision could not be had for now.
    """
    market = survey_market(world)
    now = market.at
    plans = []
    for definition in definitions:
        try:
            revision = world.revisions.newest_active(definition.task_definition)
        except NoActiveRevisionError as error:
            plans.append(Plan(definition, now, None, None, str(error)))
            continue
        selection = select(definition, revision, market.offerings, market.memory, now, market.limits)
        problem = container_problem(definition, revision)
        if problem is None and selection.is_permanent:
            plans.append(Plan(definition, now, revision, selection, explain_rejection(selection), True))
        else:
            plans.append(Plan(definition, now, revision, selection, problem or ""))
    return plans
