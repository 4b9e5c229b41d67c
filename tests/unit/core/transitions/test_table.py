"""The first row that matches decides, and what must hold after every action is seen to."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

import pytest

from relaunch.core.transitions.table import Row, always, decide_by, make_rows

NOW = datetime(2026, 11, 2, tzinfo=UTC)


class Door(StrEnum):
    OPEN = "OPEN"
    SHUT = "SHUT"


@dataclass(frozen=True)
class Item:
    state: Door


@dataclass(frozen=True)
class Decided:
    state: Door
    told: tuple[str, ...] = ()
    action: str = ""


class Push:
    pass


class Pull:
    pass


def shut(_item: Item, _event: object, _now: datetime, _limits: object) -> Decided:
    return Decided(Door.SHUT)


def slam(_item: Item, _event: object, _now: datetime, _limits: object) -> Decided:
    return Decided(Door.SHUT, ("bang",))


def open_it(_item: Item, _event: object, _now: datetime, limits: object) -> Decided:
    return Decided(Door.OPEN, (f"limits: {limits}",))


ROWS = make_rows(
    {"O": Door.OPEN, "S": Door.SHUT},
    ("O", Push, lambda _item, event: event is None, slam, "S"),
    ("O", Push, always, shut, "S"),
    ("O", Push, always, slam, "S"),
    ("OS", Pull, always, open_it, "O"),
)


def test_a_row_has_the_states_of_its_codes():
    assert make_rows(
        {"O": Door.OPEN, "S": Door.SHUT}, ("OS", Pull, always, open_it, "O"), ("O", Push, always, shut, "")
    ) == (
        Row(frozenset(Door), Pull, always, open_it, frozenset({Door.OPEN})),
        Row(frozenset({Door.OPEN}), Push, always, shut, frozenset()),
    )


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        (Door.OPEN, Push(), Decided(Door.SHUT, action="shut")),
        (Door.SHUT, Pull(), Decided(Door.OPEN, ("limits: 5",), action="open_it")),
        (Door.SHUT, Push(), None),
    ],
)
def test_the_first_row_of_the_state_and_the_event_whose_guard_holds_decides(state, event, expected):
    assert decide_by(ROWS, (), Item(state), event, NOW, 5) == expected


def test_completions_see_the_item_the_event_and_what_was_decided_one_after_the_other():
    item, event = Item(Door.OPEN), Push()

    def note(before: Item, happened: Push, decision: Decided, now: datetime) -> Decided:
        assert (before, happened, now) == (item, event, NOW)
        return replace(decision, told=(*decision.told, f"{len(decision.told)}"))

    assert decide_by(ROWS, (note, note), item, event, NOW, None).told == ("0", "1")
