"""The behaviour of RateStore: the fake and the adapter."""

from dataclasses import replace

import pytest

from contracts.conftest import Stores
from fakes.builders import NOW
from relaunch.core.selection.rates import ObservedRate, RateRecord
from relaunch.ports import RateStore

RATE = ObservedRate("resnet-1", 2, 300, NOW, 0.5, "abc", 12.5)
NONE = RateRecord("resnet", "4x A10G")
ONE = replace(NONE, observed=(RATE, replace(RATE, attempt=3, save_seconds=None)))


@pytest.fixture
def store(stores: Stores) -> RateStore:
    return stores.rates


def test_of_what_nobody_measured_nothing_is_known(store: RateStore) -> None:
    assert store.load_rate("resnet", "4x A10G") == NONE
    assert store.load_rates("resnet") == []


def test_what_was_saved_is_found_with_all_of_its_definition_and_of_no_other(store: RateStore) -> None:
    others = [replace(ONE, accelerators="0.125x L4"), replace(ONE, definition="resnet2")]

    assert [store.save_rate(each) for each in (ONE, *others, ONE)] == [True, True, True, False]

    assert store.load_rate("resnet", "4x A10G") == replace(ONE, version=1)
    assert store.load_rates("resnet") == [replace(others[0], version=1), replace(ONE, version=1)]


def test_of_two_that_learn_at_once_one_has_to_begin_again(store: RateStore) -> None:
    assert store.save_rate(ONE)

    assert not store.save_rate(replace(NONE, observed=(RATE,)))
    assert store.save_rate(replace(ONE, version=1))
    assert not store.save_rate(replace(ONE, version=1))
    assert store.load_rate("resnet", "4x A10G") == replace(ONE, version=2)
