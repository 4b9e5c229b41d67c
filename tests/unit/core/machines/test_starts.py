"""How many machines may start at once for one cause, and how many it may cost in a day."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_instance_type, make_offering
from fakes.machines import machine, offering
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.starts import (
    AT_ONCE,
    DAY,
    MOST_USELESS,
    Starts,
    Worth,
    causes_of,
    current,
    doubted_pools,
    find_limit,
    forgotten_at,
    image_of,
    settled,
    startable,
    started,
)
from relaunch.core.offerings.capacity_memory import image_scope, placement_scope
from relaunch.core.offerings.instance_types import AWS_NEURON, AmiKind

IMAGE, FAMILY, POOL = image_scope(AmiKind.GPU), placement_scope("trainer"), offering()
MINUTE = timedelta(minutes=1)


def starts(starting: int = 0, useless: int = 0, cause=IMAGE) -> Starts:
    """Return what is known of a cause: so many start since NOW, so many were of no use an hour before."""
    return Starts(
        cause,
        {f"s-{number}": NOW for number in range(starting)},
        {f"u-{number}": NOW - 60 * MINUTE for number in range(useless)},
    )


def requested(machine_id: str) -> Machine:
    new = machine(MachineState.REQUESTED)
    one_pool = replace(new.request, overrides=new.request.overrides[:1])
    return replace(new, machine_id=machine_id, family="trainer", request=one_pool)


@pytest.mark.parametrize(
    ("starting", "useless", "may_start"),
    [
        (0, 0, True),
        (AT_ONCE - 1, 0, True),
        (AT_ONCE, 0, False),
        (AT_ONCE - 2, 2, False),
        (0, 3, True),
        (1, 3, False),
        (0, MOST_USELESS - 5, True),
    ],
)
def test_so_many_may_start_and_of_a_bad_cause_one_at_a_time(starting: int, useless: int, may_start: bool):
    limit = find_limit(starts(starting, useless), NOW)

    assert (limit is None) is may_start
    assert limit is None or limit.until is None


@pytest.mark.parametrize(("useless", "hours"), [(MOST_USELESS - 4, 5), (MOST_USELESS - 1, 5), (MOST_USELESS, 23)])
def test_the_last_of_a_day_are_hours_apart_and_then_there_is_none(useless: int, hours: int):
    limit = find_limit(starts(0, useless), NOW)

    assert limit is not None
    assert limit.until == NOW + hours * 60 * MINUTE


def test_a_pool_is_bad_after_its_first_machine_of_no_use():
    limit = find_limit(starts(1, 1, POOL), NOW)

    assert limit is not None
    assert str(POOL) in limit.reason
    assert find_limit(starts(0, 1, POOL), NOW) is None


def test_a_burst_that_fails_leaves_half_of_the_day_s_machines_for_probes():
    known = Starts(IMAGE)
    for number in range(100):
        if find_limit(known, NOW) is None:
            (known, *_) = started(requested(f"m-{number}"), {IMAGE: known}, NOW)
    for machine_id in known.starting:
        known = settled(known, machine_id, NOW, Worth.USELESS)

    assert len(known.useless) == AT_ONCE == MOST_USELESS / 2
    assert find_limit(known, NOW) is None


def test_whatever_happens_a_cause_costs_no_more_in_a_day_and_one_is_left_for_its_end():
    known, bought, waits = Starts(FAMILY), list[datetime](), list[timedelta]()
    for minute in range(3 * 24 * 60):
        now = NOW + minute * MINUTE
        limit = find_limit(known, now)
        if limit is None:
            bought.append(now)
            _, known = started(requested(f"m-{minute}"), {FAMILY: known}, now)
        elif known.starting:
            known = settled(known, min(known.starting), now, Worth.USELESS)
        elif limit.until is not None:
            waits.append(limit.until - now)

    by_day = [sum(since <= at < since + DAY for at in bought) for since in bought]
    assert max(by_day) <= MOST_USELESS
    assert by_day[0] == 11, "eight within minutes, and one every six hours"
    assert max(waits) <= timedelta(hours=6)


@pytest.mark.parametrize("cause", [IMAGE, FAMILY])
def test_a_machine_that_shows_late_is_counted_all_the_same(cause):
    known, bought, late = Starts(cause), 0, []
    for minute in range(24 * 60):
        now = NOW + minute * MINUTE
        while late and now - late[0][1] > 60 * MINUTE:
            machine_id, asked_at = late.pop(0)
            assert machine_id in known.starting, "whether it was requested for the family is still known"
            known = settled(known, machine_id, asked_at, Worth.USELESS)
        if find_limit(known, now) is None:
            bought += 1
            late.append((f"m-{minute}", now))
            known = next(each for each in started(requested(f"m-{minute}"), {cause: known}, now) if each.cause == cause)

    assert bought <= MOST_USELESS, bought


def test_a_useful_machine_ends_what_was_launched_before_it():
    known = replace(starts(2, 3), useless={"u-1": NOW, "u-2": NOW + 2 * MINUTE})

    after = settled(known, "s-0", NOW + MINUTE, Worth.USEFUL)

    assert (set(after.starting), set(after.useless)) == ({"s-1"}, {"u-2"})
    assert settled(after, "s-1", NOW, Worth.USELESS).useless == after.useless, "it was launched before the useful one"
    assert settled(after, "s-0", NOW, Worth.USEFUL) == after
    assert settled(after, "s-1", NOW, Worth.UNKNOWN) == replace(after, starting={})


def test_a_task_that_is_placed_is_waited_for_until_one_of_the_family_has_run_and_again_after_a_useless_machine():
    known = starts(2, cause=FAMILY)

    assert settled(known, "s-0", NOW, Worth.PLACED) == known
    ran = settled(known, "s-0", NOW, Worth.USEFUL)
    placed = settled(ran, "s-1", NOW, Worth.PLACED)
    assert (ran.useful_at, placed) == (NOW, replace(ran, starting={}))
    refused = settled(replace(placed, starting={"s-2": NOW}), "s-1", NOW + MINUTE, Worth.USELESS)
    assert refused.useless == {"s-1": NOW + MINUTE}, "it counts though its task was placed"
    assert settled(refused, "s-2", NOW, Worth.PLACED) == refused


def test_what_nobody_tells_any_more_is_forgotten():
    known = starts(1, 1)

    assert find_limit(starts(AT_ONCE), NOW + 59 * MINUTE) is not None
    assert find_limit(starts(AT_ONCE), NOW + 60 * MINUTE) is None
    assert current(known, NOW + DAY).starting == {}
    assert current(known, NOW + DAY).useless == {}
    assert forgotten_at(known) == NOW + DAY
    assert forgotten_at(replace(known, useful_at=NOW)) == NOW + 30 * DAY
    assert forgotten_at(Starts(IMAGE)) is None


def test_a_new_machine_counts_for_its_image_its_family_and_a_doubted_pool():
    new = requested("m-1")
    pool = new.request.overrides[0].offering
    bad = {pool: starts(0, 1, pool)}

    assert [each.cause for each in started(new, {}, NOW)] == [IMAGE, FAMILY]
    assert [each.cause for each in started(new, bad, NOW)] == [IMAGE, FAMILY, pool]
    assert doubted_pools(bad, NOW) == {pool}
    assert causes_of(new) == (IMAGE, FAMILY, pool)
    assert causes_of(machine(MachineState.STARTING))[-1] == offering()
    assert image_of(new) == IMAGE


def test_several_pools_of_a_request_are_not_known_until_ec2_has_chosen():
    new = requested("m-1")
    two = replace(new.request, overrides=(*new.request.overrides, replace(new.request.overrides[0], subnet_id="s-2")))

    assert causes_of(replace(new, request=two)) == (IMAGE, FAMILY)


class TestStartable:
    """What may be requested of what selection kept."""

    own = make_offering(zone="us-east-1a", is_own_machine=True)
    other = make_offering(zone="us-east-1b", is_own_machine=True)
    provider = make_offering(capacity_provider="g5")

    def test_a_bad_pool_leaves_the_others(self):
        bad = {self.own.key: starts(1, 1, self.own.key)}

        kept, limit = startable((self.own, self.other), "trainer", bad, NOW)

        assert kept == [self.other]
        assert limit is not None

    def test_without_limits_all_may(self):
        assert startable((self.own, self.provider), "trainer", {}, NOW) == ([self.own, self.provider], None)

    def test_a_capacity_provider_has_another_image(self):
        kept, limit = startable((self.own, self.provider), "trainer", {IMAGE: starts(AT_ONCE)}, NOW)

        assert kept == [self.provider]
        assert limit == find_limit(starts(AT_ONCE), NOW)

    def test_neuron_devices_need_another_image(self):
        trainium = make_instance_type("trn1.32xlarge", accelerator_manufacturer=AWS_NEURON, neuron_devices=16)
        neuron = make_offering(trainium, is_own_machine=True)

        assert startable((neuron,), "trainer", {IMAGE: starts(AT_ONCE)}, NOW) == ([neuron], None)

    def test_a_machine_that_starts_is_waited_for_rather_than_a_day(self):
        spent, busy = starts(0, MOST_USELESS, self.own.key), starts(1, 1, self.other.key)

        kept, limit = startable((self.own, self.other), "trainer", {self.own.key: spent, self.other.key: busy}, NOW)

        assert kept == []
        assert limit == find_limit(busy, NOW)

    def test_a_family_that_is_spent_counts_more_than_an_image_that_starts(self):
        spent, busy = starts(0, MOST_USELESS, FAMILY), starts(AT_ONCE)

        kept, limit = startable((self.own,), "trainer", {FAMILY: spent, IMAGE: busy}, NOW)

        assert kept == []
        assert limit == find_limit(spent, NOW)
        assert "for tasks of trainer" in limit.reason
        assert "with the image for gpu" in find_limit(busy, NOW).reason
