"""The cluster query language: a strict parser, and evaluation against the attributes of container instances.

Source: "Create expressions to define container instances for Amazon ECS tasks" in the ECS Developer Guide. ECS uses
Java's regular expressions, this module Python's; `Expression.is_portable` says whether that can make a difference.

The value of a subject may be unknown (UNKNOWN), of an instance that has not been launched yet. An expression is then
true or false only if it is so whatever that value is (the strong logic of Kleene).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from operator import eq
from typing import Any, Never

from relaunch.core.records import dataclass


class Unknown(Enum):
    """The type of UNKNOWN."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
"""The value of a subject that is not known."""
Value = str | int | bool | datetime | frozenset[str] | None
"""The value of a subject: a set for `task:group`, None if the instance does not have the attribute."""
Lookup = Callable[[str], Value | Unknown]

MAX_LENGTH = 2_000
"""Characters of an expression (PlacementConstraint, Amazon ECS API Reference)."""
MAX_DEPTH = 50
"""How deep expressions may be nested here; the Guide names no limit."""

_OPERATORS = {
    "==": "==", "equals": "==", "!=": "!=", "not_equals": "!=",
    ">": ">", "greater_than": ">", ">=": ">=", "greater_than_equal": ">=",
    "<": "<", "less_than": "<", "<=": "<=", "less_than_equal": "<=",
    "exists": "exists", "!exists": "not_exists", "not_exists": "not_exists",
    "in": "in", "!in": "not_in", "not_in": "not_in",
    "=~": "matches", "matches": "matches", "!~": "not_matches", "not_matches": "not_matches",
}  # fmt: skip
_EQUAL = ("==", "!=")
_ORDER = (">", ">=", "<", "<=")
_CHOICE = ("in", "not_in", "matches", "not_matches")
_SUBJECTS = {
    "agentConnected": (*_EQUAL, *_CHOICE),
    "agentVersion": (*_EQUAL, *_ORDER),
    "ec2InstanceId": (*_EQUAL, *_CHOICE),
    "registeredAt": (*_EQUAL, *_ORDER),
    "runningTasksCount": (*_EQUAL, *_ORDER),
    "task:group": tuple(_OPERATORS.values()),
}
"""The operators of each subject; for `task:group` the Guide names none."""
_ATTRIBUTE = r"attribute:[A-Za-z0-9_.\-/\\]{1,128}"
_MOMENT = r"(?a)\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2})?)?"
"""The Guide's formats of `registeredAt`: a date, a time in UTC, a time with `Z` or an offset."""
_TOKEN = re.compile(
    r"\s*(?:(?P<symbol>&&|\|\||==|!=|>=|<=|=~|!~|!exists|!in|[()\[\],<>!])"
    r"|\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<word>[^\s()\[\],<>!=&|\"']+))"
)
# What Java and Python match alike, in time that is linear in the text for each repetition: nothing repeats a group.
_PORTABLE_PATTERN = (
    r"(?:(?:[A-Za-z0-9_/:@ .-]|\\[.\-/\\dw]|\[\^?[A-Za-z0-9_.-]+\])(?:[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?"
    r"|\((?:\?:)?|\)(?![*+?{])|[|^$])*"
)
_MAX_REPETITIONS = 4
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


class ExpressionError(ValueError):
    """The text is not a valid expression."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A subject, an operator and its arguments."""

    subject: str
    operator: str
    arguments: tuple[str, ...] = ()

    def holds(self, lookup: Lookup) -> bool | None:
        """Return whether the expression is true of the instance that `lookup` describes; None if it is not known."""
        value = lookup(self.subject)
        return None if isinstance(value, Unknown) else _compare(value, self.operator, self.arguments)

    @property
    def is_portable(self) -> bool:
        """Return whether ECS certainly decides the same."""
        return "matches" not in self.operator or _is_portable_pattern(self.arguments[0])


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated expression."""

    operand: "Node"

    def holds(self, lookup: Lookup) -> bool | None:
        """Return whether the operand is false; None if it is not known."""
        result = self.operand.holds(lookup)
        return None if result is None else not result

    @property
    def is_portable(self) -> bool:
        """Return whether ECS certainly decides the same."""
        return self.operand.is_portable


@dataclass(frozen=True, slots=True)
class Junction:
    """Several expressions joined by `and` or by `or`."""

    is_and: bool
    operands: tuple["Node", ...]

    def holds(self, lookup: Lookup) -> bool | None:
        """Return whether all, or any, of the operands are true; None if it is not known."""
        is_known = True
        for operand in self.operands:
            result = operand.holds(lookup)
            if result is not None and result is not self.is_and:
                return result
            is_known = is_known and result is not None
        return self.is_and if is_known else None

    @property
    def is_portable(self) -> bool:
        """Return whether ECS certainly decides the same."""
        return all(operand.is_portable for operand in self.operands)


Node = Comparison | Negation | Junction


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression and its text."""

    text: str
    root: Node = field(compare=False)

    def holds(self, lookup: Lookup) -> bool | None:
        """Return whether the expression is true of the instance that `lookup` describes; None if it is not known."""
        return self.root.holds(lookup)

    @property
    def is_portable(self) -> bool:
        """Return whether ECS certainly decides the same: its regular expressions mean the same in Java, and are quick.

        A regular expression that backtracks takes exponential time for some texts.
        """
        return self.root.is_portable


@lru_cache(maxsize=4_096)
def parse_expression(text: str) -> Expression:
    """Parse an expression.

    Raises:
        ExpressionError: The text is empty, too long, or not in the language.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"an expression has at most {MAX_LENGTH} characters")
    parser = _Parser(text)
    root = parser.parse_or()
    parser.expect_end()
    if isinstance(root, Comparison) and parser.saw_parenthesis:
        raise ExpressionError("a single expression may not contain parentheses")
    return Expression(text, root)


class _Parser:
    """A recursive descent parser; regular expressions are read from the text, not from tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        self.saw_parenthesis = False

    def parse_or(self) -> Node:
        return self._parse_junction(self._parse_and, "||", "or")

    def expect_end(self) -> None:
        if self._text[self._position :].strip():
            self._fail("the end")

    def _parse_and(self) -> Node:
        return self._parse_junction(self._parse_not, "&&", "and")

    def _parse_junction(self, parse_operand: Callable[[], Node], symbol: str, word: str) -> Node:
        operands = [parse_operand()]
        while self._accept(symbol, word):
            operands.append(parse_operand())
        return operands[0] if len(operands) == 1 else Junction(word == "and", tuple(operands))

    def _parse_not(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"parentheses and negations are nested at most {MAX_DEPTH} deep")
        node = self._parse_operand()
        self._depth -= 1
        return node

    def _parse_operand(self) -> Node:
        if self._accept("!", "not"):
            return Negation(self._parse_not())
        if self._accept("("):
            self.saw_parenthesis = True
            inner = self.parse_or()
            if not self._accept(")"):
                self._fail("')'")
            return inner
        return self._parse_comparison()

    def _parse_comparison(self) -> Comparison:
        subject = self._next("a subject")
        if subject not in _SUBJECTS and not re.fullmatch(_ATTRIBUTE, subject):
            raise ExpressionError(f"unknown subject {subject!r}")
        word = self._next("an operator")
        if word not in _OPERATORS:
            raise ExpressionError(f"unknown operator {word!r}")
        operator = _OPERATORS[word]
        if operator not in _SUBJECTS.get(subject, (operator,)):
            raise ExpressionError(f"{subject} does not have the operator {word}")
        arguments = self._arguments(operator)
        if subject == "registeredAt":
            _moment(arguments[0])
        return Comparison(subject, operator, arguments)

    def _arguments(self, operator: str) -> tuple[str, ...]:
        if operator in ("exists", "not_exists"):
            return ()
        if operator in ("in", "not_in"):
            return tuple(self._list())
        if operator in ("matches", "not_matches"):
            return (self._pattern(),)
        return (self._argument(),)

    def _list(self) -> Iterator[str]:
        if not self._accept("["):
            self._fail("'['")
        yield self._argument()
        while self._accept(","):
            yield self._argument()
        if not self._accept("]"):
            self._fail("']'")

    def _argument(self) -> str:
        match = self._match()
        if match is None or match.group("symbol") is not None:
            self._fail("an argument")
        self._position = match.end()
        return next(group for group in match.group("double", "single", "word") if group is not None)

    def _pattern(self) -> str:
        match = self._match()
        quoted = None if match is None else match.group("double") or match.group("single")
        pattern = self._argument() if quoted is not None else self._bare_pattern()
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ExpressionError(f"not a regular expression: {pattern!r}") from error
        return pattern

    def _bare_pattern(self) -> str:
        start = self._position
        while start < len(self._text) and self._text[start].isspace():
            start += 1
        end = start
        depth = 0
        while end < len(self._text) and not self._text[end].isspace():
            depth += {"(": 1, ")": -1}.get(self._text[end], 0)
            if depth < 0:
                break
            end += 1
        if start == end:
            self._fail("a regular expression")
        self._position = end
        return self._text[start:end]

    def _match(self) -> re.Match[str] | None:
        return _TOKEN.match(self._text, self._position)

    def _next(self, wanted: str) -> str:
        match = self._match()
        token = None if match is None else match.group("symbol") or match.group("word")
        if match is None or token is None:
            self._fail(wanted)
        self._position = match.end()
        return token

    def _accept(self, *tokens: str) -> bool:
        match = self._match()
        if match is None or (match.group("symbol") or match.group("word")) not in tokens:
            return False
        self._position = match.end()
        return True

    def _fail(self, wanted: str) -> Never:
        found = self._text[self._position : self._position + 20].strip() or "nothing"
        raise ExpressionError(f"expected {wanted}, found {found!r}")


def _compare(value: Value, operator: str, arguments: tuple[str, ...]) -> bool:
    if operator.startswith("not_") or operator == "!=":
        positive = "==" if operator == "!=" else operator.removeprefix("not_")
        return not _compare(value, positive, arguments)
    if isinstance(value, frozenset):
        return bool(value) if operator == "exists" else any(_compare(each, operator, arguments) for each in value)
    if operator == "exists" or value is None:
        return value is not None
    if operator in _ORDERED or isinstance(value, datetime):
        return _is_ordered(value, operator, arguments[0])
    if operator == "matches":
        return re.fullmatch(arguments[0], _text(value)) is not None
    return _text(value) in arguments


def _is_ordered(value: Value, operator: str, argument: str) -> bool:
    compare: Callable[[Any, Any], bool] = _ORDERED.get(operator, eq)
    if isinstance(value, datetime):
        return bool(compare(value.replace(microsecond=0), _moment(argument)))
    try:
        if isinstance(value, str) and value.count(".") > 1:
            return bool(compare(_version(value), _version(argument)))
        return bool(compare(float(_text(value)), float(argument)))
    except (ValueError, TypeError):
        return False


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text) if re.fullmatch(_MOMENT, text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise ExpressionError(f"not a date or time like 2018-06-18 or 2018-06-18T22:28:28Z: {text!r}")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _is_portable_pattern(pattern: str) -> bool:
    repetitions = sum(pattern.count(character) for character in "*+?{") - pattern.count("(?:")
    return re.fullmatch(_PORTABLE_PATTERN, pattern) is not None and repetitions <= _MAX_REPETITIONS


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
