"""Whether the values of parameters are such as their templates take, before anything is made.

CloudFormation checks those of a stack when that stack is made, after the stacks before it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from relaunch_cli.deployment.refusals import RefusedError

_NUMBER = re.compile(r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)")


def check_values(named: Mapping[str, str], declared: Iterable[Mapping[str, Mapping[str, Any]]]) -> None:
    """Check each value against what every template that has the parameter declares.

    Args:
        named: The values by the names of their parameters.
        declared: The section Parameters of each template.

    Raises:
        RefusedError: some are not allowed; the message has a line for each.
    """
    templates = list(declared)
    lines = [line for name, value in named.items() for line in _refusals(name, value, templates)]
    if lines:
        raise RefusedError("\n".join(lines))


def _refusals(name: str, value: str, templates: Iterable[Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    for parameters in templates:
        allowed = _allowed(value, parameters[name]) if name in parameters else ""
        if allowed:
            # A value that CloudFormation hides is no text for a terminal or a log.
            shown = f"this value of {name}" if parameters[name].get("NoEcho") else f"{name}={value}"
            yield f"{shown} is not allowed: {allowed}"
            return


def _allowed(value: str, parameter: Mapping[str, Any]) -> str:
    """Return what a parameter takes, empty if that value is taken."""
    if parameter["Type"] == "Number" and not _is_number(value, parameter):
        bounds = [
            f"{word} {parameter[key]}" for key, word in (("MinValue", "from"), ("MaxValue", "to")) if key in parameter
        ]
        return _described(parameter, " ".join(["a number", *bounds]))
    if "AllowedValues" in parameter and value not in map(str, parameter["AllowedValues"]):
        return _described(parameter, f"one of {', '.join(map(str, parameter['AllowedValues']))}")
    # CloudFormation holds the whole value to it, and each of a list ("Parameters", AWS CloudFormation User Guide).
    values = value.split(",") if parameter["Type"] == "CommaDelimitedList" else [value]
    if "AllowedPattern" in parameter and not all(re.fullmatch(parameter["AllowedPattern"], each) for each in values):
        return _described(parameter, f"what matches {parameter['AllowedPattern']}")
    return ""


def _is_number(value: str, parameter: Mapping[str, Any]) -> bool:
    if _NUMBER.fullmatch(value) is None:
        return False
    return float(parameter.get("MinValue", value)) <= float(value) <= float(parameter.get("MaxValue", value))


def _described(parameter: Mapping[str, Any], constraint: str) -> str:
    if "ConstraintDescription" in parameter:
        return str(parameter["ConstraintDescription"])
    return f"{constraint}. {parameter.get('Description', '')}".rstrip()
