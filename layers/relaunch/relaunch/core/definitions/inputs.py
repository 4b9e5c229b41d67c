"""Inputs of a job: an input must be declared, and its whole value must match the declared pattern."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from relaunch.core.definitions.definition import InputRule

_MAX_NAMED = 5  # the message is stored and logged, and a dispatch may have thousands
MAX_INPUT_LENGTH = 1024  # characters; RunTask limits all overrides together to 8,192

MatchPattern = Callable[[str, str], bool]
"""Returns whether a pattern matches a whole value."""


@dataclass(frozen=True, slots=True)
class CheckedInputs:
    """Values by name, valid only without errors."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()


def check_inputs(
    rules: Mapping[str, InputRule], given: Mapping[str, str], match_pattern: MatchPattern
) -> CheckedInputs:
    """Check inputs against their declarations and add defaults for those that are not given.

    An input that is not declared is an error: it may be one that was mistyped, and the default would be taken for it.
    """
    values: dict[str, str] = {}
    errors: list[str] = []
    for name, rule in rules.items():
        value = given.get(name, rule.default)
        if value is None:
            errors.append(f"input {name} has no default and was not given")
            continue
        errors.extend(_input_errors(name, rule, value, match_pattern))
        values[name] = value
    if undeclared := sorted(set(given) - set(rules)):
        errors.append(_describe_undeclared(undeclared, rules))
    return CheckedInputs(values, tuple(errors))


def _describe_undeclared(names: Sequence[str], rules: Mapping[str, InputRule]) -> str:
    named = ", ".join(map(_shorten, names[:_MAX_NAMED]))
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    are = "inputs {} are" if len(names) > 1 else "input {} is"
    known = ", ".join(rules) or "none"
    return f"{are.format(named + more)} not declared in the job definition, which declares {known}"


def _input_errors(name: str, rule: InputRule, value: str, match_pattern: MatchPattern) -> Iterator[str]:
    if len(value) > MAX_INPUT_LENGTH:
        yield f"input {name} has {len(value)} characters, {MAX_INPUT_LENGTH} are allowed"
    elif not match_pattern(rule.pattern, value):
        # Whoever sent it may have sent a secret, and the message is stored and logged.
        yield f"input {name} has {len(value)} characters and does not match {rule.pattern}"


def _shorten(text: str) -> str:
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")
