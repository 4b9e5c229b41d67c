"""Whatever batches a queue makes, a message that functions die of takes no other with it."""

import random
from collections.abc import Mapping
from functools import cache
from itertools import combinations

import pytest

from relaunch.core.messages.handling_order import LEAST_TRIES, ReceivedMessage, order_messages

LAST_TRY = 7


def ordered(messages: Mapping[str, int], last_try: int) -> list[str]:
    """Return ids in the order of handling; `messages` are receives by id."""
    names = list(messages)
    return [names[index] for index in order_messages([ReceivedMessage(*each) for each in messages.items()], last_try)]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param({"b": 1, "a": 1, "c": 1}, "bac", id="new-ones-as-they-came"),
        pytest.param({"a": 2, "c": 1, "b": 1}, "cba", id="new-ones-before-suspects"),
        pytest.param({"a": 4, "b": 2, "c": 3}, "bca", id="the-least-received-suspects-first"),
        pytest.param({"a": 2, "b": 2, "c": 2}, "cba", id="an-even-time"),
        pytest.param({"a": 3, "b": 3, "c": 3}, "abc", id="the-other-way-round-the-next-time"),
        pytest.param({"a": 1, "b": 2, "c": 7}, "cab", id="the-last-try-first"),
        pytest.param({"a": 1, "b": 8, "c": 7}, "cba", id="past-the-last-try"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_messages_are_handled_in_the_order_of_what_a_death_would_cost_them(messages, expected):
    assert ordered(messages, last_try=7) == list(expected)


def test_where_the_last_try_is_not_known_new_ones_come_first():
    assert ordered({"a": 9, "b": 1}, last_try=0) == ["b", "a"]


def survivors(batch: Mapping[str, int], poison: frozenset[str], last_try: int) -> dict[str, int]:
    """Return what a function leaves in the queue that dies of poison: of new messages alone, it deletes none before."""
    names = ordered(batch, last_try)
    dies_at = next((place for place, name in enumerate(names) if name in poison), len(names))
    is_suspect = any(receives > 1 for receives in batch.values())
    return {name: batch[name] for name in names[dies_at if is_suspect or dies_at == len(names) else 0 :]}


@cache
def worst_receives(neighbours: tuple[tuple[str, int], ...], poison: tuple[str, int], last_try: int) -> int:
    """Return how often a neighbour is received at most, whichever of them the queue puts into each batch.

    Those that are not with the poison are handled, now or later; they are left to be with it another time.
    """
    name, receives = poison
    if receives == last_try:
        # Poison is a dead letter now. Each neighbour that is left is handled when it is received again.
        return max((count + 1 for _, count in neighbours), default=0)
    worst = max((count + 1 for _, count in neighbours), default=0)
    for size in range(len(neighbours) + 1):
        for chosen in combinations(neighbours, size):
            batch = {each: count + 1 for each, count in (*chosen, poison)}
            left = survivors(batch, frozenset({name}), last_try)
            together = tuple(sorted((each, count) for each, count in left.items() if each != name))
            apart = tuple(each for each in neighbours if each not in chosen)
            handled = max((batch[each] for each in batch if each not in left), default=0)
            later = worst_receives(tuple(sorted(apart + together)), (name, receives + 1), last_try)
            worst = max(worst, handled, later)
    return worst


@pytest.mark.no_cover
@pytest.mark.parametrize(("last_try", "most"), [(LEAST_TRIES, 3), (4, 4), (5, 4), (7, 4)])
def test_no_batches_that_a_queue_can_make_cost_a_neighbour_more_than_four_receives(last_try: int, most: int) -> None:
    worst = {
        poison: worst_receives(tuple((name, 0) for name in "abcde" if name != poison), (poison, 0), last_try)
        for poison in "abcde"
    }

    assert max(worst.values()) == most


def test_two_tries_are_too_few() -> None:
    assert worst_receives((("a", 0), ("c", 0)), ("b", 0), LEAST_TRIES - 1) == LEAST_TRIES


def deliver(poison: frozenset[str], neighbours: int, draw: random.Random) -> tuple[set[str], int]:
    """Deliver batches of up to ten messages that the queue draws, until it is empty.

    Return the dead letters, and how often a message that was handled was received at most.
    """
    receives = dict.fromkeys((*poison, *(f"{number:03}" for number in range(neighbours))), 0)
    dead_letters, most = set(), 0
    while receives:
        batch = draw.sample(sorted(receives), min(len(receives), draw.randint(1, 10)))
        ended = {name for name in batch if receives[name] == LAST_TRY}
        dead_letters |= ended
        tried = {name: receives[name] + 1 for name in batch if name not in ended}
        left = survivors(tried, poison, LAST_TRY)
        receives = {name: count for name, count in (receives | tried).items() if name not in {*batch} - {*left}}
        most = max([most, *(count for name, count in tried.items() if name not in left)])
    return dead_letters, most


@pytest.mark.no_cover
@pytest.mark.parametrize("neighbours", [10, 100])
def test_the_message_that_functions_die_of_is_the_only_dead_letter(neighbours: int) -> None:
    outcomes = [deliver(frozenset({"050-"}), neighbours, random.Random(seed)) for seed in range(300)]  # noqa: S311

    assert all(dead_letters == {"050-"} for dead_letters, _ in outcomes)
    assert max(most for _, most in outcomes) <= 4
