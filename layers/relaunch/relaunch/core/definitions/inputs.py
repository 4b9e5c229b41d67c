"""Inputs of a job: only declared ones pass, and only with a value that their pattern matches as a whole."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relaunch.core.definitions.definition import InputRule

MAX_INPUT_LENGTH = 1024  # characters; all overrides of one RunTask share 8,192


@dataclass(frozen=True, slots=True)
class CheckedInputs:
    """Values by name, to be used only when there are no errors, and notes on what was left out."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_inputs(rules: Mapping[str, InputRule], given: Mapping[str, str]) -> CheckedInputs:
    """Check given inputs against the declared ones; defaults fill what was not given."""
    values: dict[str, str] = {}
    errors: list[str] = []
    for name, rule in rules.items():
        value = given.get(name, rule.default)
        if value is None:
            errors.append(f"input {name} has no default and was not given")
            continue
        errors.extend(_list_faults(name, rule, value))
        values[name] = value
    dropped = sorted(set(given) - set(rules))
    notes = tuple(f"input {_shorten(name)} is not declared in the job definition and was left out" for name in dropped)
    return CheckedInputs(values, tuple(errors), notes)


def _list_faults(name: str, rule: InputRule, value: str) -> Iterator[str]:
    if len(value) > MAX_INPUT_LENGTH:
        yield f"input {name} has {len(value)} characters, {MAX_INPUT_LENGTH} are allowed"
    elif re.fullmatch(rule.pattern, value) is None:
        yield f"input {name} is {_shorten(value)}, which does not match {rule.pattern}"


def _shorten(text: str) -> str:
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")
