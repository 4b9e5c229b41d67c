"""The condition operators of IAM policies.

Source: "IAM JSON policy elements: Condition operators" and "Set operators for multivalued context keys" in the IAM User
Guide. What is not described there is an error, never a condition that holds.
"""

import ipaddress
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from relaunch_local.iam.permission import ContextValue


class PolicyError(ValueError):
    """A policy contains what IAM does not know, or what is not evaluated here."""


Matches = Callable[[str, str], bool]
"""Returns whether a value of the request matches a value of the policy."""


@lru_cache(maxsize=4_096)
def _compiled(pattern: str, *, ignore_case: bool) -> re.Pattern[str]:
    text = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.compile(text, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def matches_pattern(value: str, pattern: str, *, ignore_case: bool = False) -> bool:
    """Return whether a value matches a pattern with the wildcards `*` and `?`."""
    return _compiled(pattern, ignore_case=ignore_case).fullmatch(value) is not None


def matches_arn(value: str, pattern: str) -> bool:
    """Return whether an ARN matches a pattern: each of the six components separately."""
    parts = value.split(":", 5)
    patterns = pattern.split(":", 5)
    return len(parts) == len(patterns) == 6 and all(map(matches_pattern, parts, patterns))


def _numeric(compare: Callable[[float, float], bool]) -> Matches:
    return lambda actual, expected: compare(float(actual), float(expected))


def _date(compare: Callable[[datetime, datetime], bool]) -> Matches:
    return lambda actual, expected: compare(_moment(actual), _moment(expected))


def _moment(text: str) -> datetime:
    if re.fullmatch(r"\d+", text):
        return datetime.fromtimestamp(int(text), UTC)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_in_network(actual: str, expected: str) -> bool:
    address = ipaddress.ip_address(actual)
    network = ipaddress.ip_network(expected, strict=False)
    return address.version == network.version and address in network


def _equals_ignoring_case(actual: str, expected: str) -> bool:
    return actual.casefold() == expected.casefold()


_POSITIVE: Mapping[str, Matches] = {
    "StringEquals": operator.eq,
    "StringEqualsIgnoreCase": _equals_ignoring_case,
    "StringLike": matches_pattern,
    "NumericEquals": _numeric(operator.eq),
    "NumericLessThan": _numeric(operator.lt),
    "NumericLessThanEquals": _numeric(operator.le),
    "NumericGreaterThan": _numeric(operator.gt),
    "NumericGreaterThanEquals": _numeric(operator.ge),
    "DateEquals": _date(operator.eq),
    "DateLessThan": _date(operator.lt),
    "DateLessThanEquals": _date(operator.le),
    "DateGreaterThan": _date(operator.gt),
    "DateGreaterThanEquals": _date(operator.ge),
    "Bool": _equals_ignoring_case,
    "BinaryEquals": operator.eq,
    "IpAddress": _is_in_network,
    "ArnEquals": matches_arn,
    "ArnLike": matches_arn,
}
_NEGATED: Mapping[str, Matches] = {
    "StringNotEquals": operator.eq,
    "StringNotEqualsIgnoreCase": _equals_ignoring_case,
    "StringNotLike": matches_pattern,
    "NumericNotEquals": _numeric(operator.eq),
    "DateNotEquals": _date(operator.eq),
    "NotIpAddress": _is_in_network,
    "ArnNotEquals": matches_arn,
    "ArnNotLike": matches_arn,
}
_SETS = ("ForAllValues", "ForAnyValue")


@dataclass(frozen=True, slots=True)
class ConditionOperator:
    """An operator as it is written in a policy, such as `ForAnyValue:StringLikeIfExists`."""

    name: str
    over: str
    """`ForAllValues`, `ForAnyValue`, or empty for a key with one value."""
    if_exists: bool
    is_negated: bool

    def holds(self, actual: ContextValue, expected: Sequence[Any]) -> bool:
        """Return whether the condition holds for a key's values in the request and in the policy.

        Raises:
            PolicyError: a key with several values is compared without a set operator.
        """
        texts = [_text(each) for each in expected]
        if self.name == "Null":
            return all((actual is None) == (each == "true") for each in texts)
        values = (actual,) if isinstance(actual, str) else actual or ()
        if self.over == "ForAllValues":
            return all(self._holds_of(value, texts) for value in values)
        if self.over == "ForAnyValue":
            return self.if_exists if actual is None else any(self._holds_of(value, texts) for value in values)
        if actual is None:
            return self.if_exists or self.is_negated
        if not isinstance(actual, str):
            raise PolicyError(f"{self.name} compares a key with several values: it needs ForAllValues or ForAnyValue")
        return self._holds_of(actual, texts)

    def _holds_of(self, value: str, expected: Sequence[str]) -> bool:
        matches = (_NEGATED if self.is_negated else _POSITIVE)[self.name]
        return any(matches(value, each) for each in expected) is not self.is_negated


@lru_cache(maxsize=256)
def parse_operator(written: str) -> ConditionOperator:
    """Parse an operator.

    Raises:
        PolicyError: IAM has no such operator.
    """
    over, _, rest = written.rpartition(":")
    name = rest.removesuffix("IfExists")
    if over not in ("", *_SETS) or not (name in _POSITIVE or name in _NEGATED or rest == "Null"):
        raise PolicyError(f"IAM has no condition operator {written}")
    return ConditionOperator(name, over, rest != name, name in _NEGATED)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
