"""The requests of `plan_api` (docs/plan_api.schema.json), by Invoke or its function URL.

A function of its own, because IAM tells functions apart and not what their requests ask for: whoever may call this one
can start nothing, nor can its role (docs/decisions/0029-plans-have-a-function-of-their-own.md).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.definition_file.writer import written_keys
from relaunch.adapters.messages.function_url import is_http_request, make_response, read_caller, read_json
from relaunch.adapters.messages.plan_api import Compared, describe_comparison, describe_problems, parse_compare_request
from relaunch.adapters.messages.plan_description import describe_plan
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import JobDefinition
from relaunch.entrypoints.job_api import describe_refusal, status_of
from relaunch.ports import NotGrantedError, PermanentError, RequestDependencies, TransientError
from relaunch.usecases.compare_definitions import ComparedDefinition, compare_definitions
from relaunch.usecases.plan_jobs import Plan

_FILE = "relaunch.yaml"
_UNAVAILABLE = 503


def answer_plan_request(event: object, deps: RequestDependencies) -> dict[str, Any]:
    """Return the response to a request: `{"comparison": …}`, or `{"error": {"code", "message"}}` for a permanent error.

    A request to the function URL gets an HTTP response with this body, of status 503 for a temporary error.

    Raises:
        TransientError: a temporary error of an Invoke, or a permission that the function lacks; retry the call.
    """
    if not isinstance(event, Mapping) or not is_http_request(event):
        return _answer(event, deps)
    try:
        read_caller(event)
        answer = _answer(read_json(event), deps)
    except PermanentError as error:
        answer = describe_refusal(error)
    except TransientError as error:
        deps.log.decided("failed", reason=str(error))
        return make_response(_UNAVAILABLE, {"error": {"code": "Unavailable", "message": "try again later"}})
    return make_response(status_of(answer), answer)


def _answer(event: object, deps: RequestDependencies) -> dict[str, Any]:
    try:
        request = parse_compare_request(event)
        try:
            proposed = _parse(request.definitions)
        except DefinitionFileError as error:
            return describe_problems(error.problems)
        base, base_problem = _parse_base(request.base)
        compared = compare_definitions(proposed, base, written_keys, deps)
        return describe_comparison([_describe(each) for each in compared], base_problem)
    except NotGrantedError as error:
        # What this function may not do, its caller cannot change.
        raise TransientError(str(error)) from error
    except PermanentError as error:
        return describe_refusal(error)


def _describe(each: ComparedDefinition) -> Compared:
    return Compared(each.name, each.kind, each.changes, _describe_plan(each.plan) if each.plan else None)


def _describe_plan(plan: Plan) -> Mapping[str, Any]:
    arn = plan.revision.arn if plan.revision else ""
    return describe_plan(plan.definition.name, plan.at, arn, plan.selection, problem=plan.problem, notices=plan.notices)


def _parse(text: str | None) -> list[JobDefinition]:
    return [] if text is None else parse_definitions(text, _FILE, load_catalogue())


def _parse_base(text: str | None) -> tuple[Sequence[JobDefinition], str]:
    """Return the definitions of the file that is replaced, and why it has none that can be read."""
    try:
        return _parse(text), ""
    except DefinitionFileError as error:
        return (), str(error.problems[0])
