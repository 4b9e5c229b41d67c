"""Plan the job of a direct request, without storing or launching anything."""

from dataclasses import replace

from relaunch.core.triggers.events import DirectRequest
from relaunch.core.triggers.matching import InvalidInputs, NoMatch
from relaunch.ports import RequestDependencies
from relaunch.usecases.plan_jobs import Plan, plan_jobs
from relaunch.usecases.submit_job import InvalidInputsError, definition_problem, load_requested, match_event


def plan_submission(request: DirectRequest, deps: RequestDependencies) -> Plan:
    """Return the plan of the job that a direct request would create now.

    The limit of waiting jobs and idempotency keys are not looked at: a plan is about where a job would run.

    Raises:
        UnknownDefinitionError: no definition has this name; the message has similar names.
        InvalidInputsError: the inputs do not match the definition; the message lists all errors.
        TransientError: prices or a revision are temporarily unavailable.
    """
    definition = load_requested(request, deps)
    matched = match_event(definition, request, deps)
    if isinstance(matched, NoMatch | InvalidInputs):
        raise InvalidInputsError(matched.reason)
    (plan,) = plan_jobs([definition], deps)
    return replace(plan, problem=definition_problem(definition, deps) or plan.problem)
