"""Inputs of a job: only declared ones pass, and only with a value that their pattern matches as a whole."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from relaunch.core.definition import InputRule

MAX_INPUT_LENGTH = 1024  # characters; all overrides of one RunTask share 8,192


@dataclass(frozen=True, slots=True)
class CheckedInputs:
    """Accepted values by name, what is wrong with the others, and what was left out."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_inputs(rules: Mapping[str, InputRule], given: Mapping[str, str]) -> CheckedInputs:
    """Check given inputs against the declared ones; defaults fill what was not given."""
    values: dict[str, str] = {}
    errors: list[str] = []
    for name, rule in rules.items():
        value = given.get(name, rule.default)
        error = _find_fault(name, rule, value)
        if error:
            errors.append(error)
        elif value is not None:
            values[name] = value
    dropped = sorted(set(given) - set(rules))
    notes = tuple(f"input {_shorten(name)} is not declared in the job definition and was left out" for name in dropped)
    return CheckedInputs(values, tuple(errors), notes)


def _find_fault(name: str, rule: InputRule, value: str | None) -> str:
    if value is None:
        return f"input {name} has no default and was not given"
    if len(value) > MAX_INPUT_LENGTH:
        return f"input {name} has {len(value)} characters, {MAX_INPUT_LENGTH} are allowed"
    if re.fullmatch(rule.pattern, value) is None:
        return f"input {name} is {_shorten(value)}, which does not match {rule.pattern}"
    return ""


def _shorten(text: str) -> str:
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")
