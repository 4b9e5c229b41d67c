"""The parameters of a deployment as they are named: NAME=VALUE, each of a stack that is deployed."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from relaunch_cli.deployment.capacity_providers import PROVIDERS
from relaunch_cli.deployment.findings import ParameterChange, Survey
from relaunch_cli.deployment.machine_parameters import MACHINE_STACK_PARAMETERS, check_most
from relaunch_cli.deployment.machine_parameters import SWITCH as MACHINES
from relaunch_cli.deployment.parameter_values import check_values
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import Source
from relaunch_cli.deployment.training_parameters import OWN_PARAMETERS, SHARED_PARAMETERS
from relaunch_cli.deployment.training_parameters import SWITCH as TRAINING
from relaunch_cli.errors import did_you_mean


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # of libyaml, ten times as fast
    """Reads a template; functions of CloudFormation become nothing."""


def _no_value(_loader: Any, _tag: str, _node: yaml.Node) -> None:
    return None


_Loader.add_multi_constructor("!", _no_value)


def read_named(arguments: Sequence[str], source: Source) -> Mapping[str, str]:
    """Return the values by name; of two with one name the later one counts, as for SAM CLI.

    Raises:
        RefusedError: an argument has another form, no stack has such a parameter, or none takes its value.
    """
    named: dict[str, str] = {}
    known = {MACHINES, TRAINING, PROVIDERS, *MACHINE_STACK_PARAMETERS, *OWN_PARAMETERS, *SHARED_PARAMETERS}
    application = application_template(source)["Parameters"]
    known |= set(application)
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not name or not separator:
            raise RefusedError(f"{argument!r} is not NAME=VALUE, for example ClusterName=training")
        if name not in known:
            near = did_you_mean(name, known)
            raise RefusedError(f"no stack has a parameter {name!r}{f': {near}' if near else ''}")
        named[name] = "" if value == '""' else value
    check_most(named, {})
    others = (_load(text)["Parameters"] for text in (source.training, source.machines))
    check_values(named, (application, *others))
    return named


def read_changes(plan: Survey, source: Source) -> Sequence[ParameterChange]:
    """Return the parameters that a deployment changes of the stacks that exist, without what it makes of their outputs.

    A parameter that a stack does not have yet has its template's default.
    """
    stacks = (
        (f"{plan.stack}-training", source.training, plan.training or {}),
        (f"{plan.stack}-machines", source.machines, plan.given),
        (plan.stack, source.application, plan.given),
    )
    return [
        change
        for name, template, wanted in stacks
        if name in plan.before
        for change in _changes(name, plan.before[name].parameters, wanted, _load(template)["Parameters"])
    ]


def _changes(
    stack: str, before: Mapping[str, str], wanted: Mapping[str, str], declared: Mapping[str, Mapping[str, Any]]
) -> Iterator[ParameterChange]:
    for name in (each for each in wanted if each in declared):
        known = before.get(name, str(declared[name].get("Default", "")))
        if declared[name].get("NoEcho"):
            # CloudFormation answers asterisks, and whether the value is another one is not known.
            yield ParameterChange(stack, name, "****", "****")
        elif known != wanted[name]:
            yield ParameterChange(stack, name, known, wanted[name])


def application_template(source: Source) -> Any:
    """Return the application's template, without the functions of CloudFormation in it."""
    return _load(source.application)


@cache
def _load(template: str) -> Any:
    return yaml.load(template, _Loader)  # noqa: S506 - a SafeLoader
