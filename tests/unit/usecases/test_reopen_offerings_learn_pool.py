"""What jobs and machines see of a spot pool is kept, whoever else writes, and nothing waits for it."""

from datetime import timedelta
from functools import partial
from unittest.mock import Mock

import pytest

from fakes.builders import NOW, make_failed_placement, make_offering_key
from fakes.dependencies import make_dependencies
from fakes.machine_story import G5, MachineStory
from fakes.sources import ListLog
from fakes.story import Story
from relaunch.core.machines.events import RefusalKind
from relaunch.core.market.learning import PoolRecord, granted, refused
from relaunch.core.offerings.spot_runs import SpotPool, pool_hours
from relaunch.ports import TransientError
from relaunch.usecases.reopen_offerings import learn_pool

HOUR = timedelta(hours=1)
KEY = make_offering_key(zone="us-east-1a")
AT = pool_hours(NOW)
GRANTED, REFUSED = partial(granted, at=AT), partial(refused, at=AT + 0.25)


def known(story: Story, key=KEY) -> PoolRecord:
    return story.deps.capacity.load_pool(key).record


def test_a_fact_that_comes_twice_or_late_changes_nothing():
    deps = make_dependencies()
    for change in (GRANTED, GRANTED, REFUSED, GRANTED, REFUSED):
        learn_pool(KEY, change, deps)

    assert deps.capacity.load_pool(KEY) == SpotPool(KEY, REFUSED(GRANTED(PoolRecord(str(KEY)))), version=2)


def test_of_a_hundred_machines_that_start_in_one_minute_one_is_written():
    deps = make_dependencies()
    for number in range(100):
        learn_pool(KEY, partial(granted, at=AT + number / 6_001), deps)

    assert deps.capacity.load_pool(KEY) == SpotPool(KEY, GRANTED(PoolRecord(str(KEY))), version=1)


def test_an_outage_that_ends_within_a_minute_is_news():
    deps = make_dependencies()
    for change in (GRANTED, partial(refused, at=AT + 0.01), partial(granted, at=AT + 0.015)):
        learn_pool(KEY, change, deps)

    assert deps.capacity.load_pool(KEY).version == 3


def test_a_fact_that_says_nothing_of_a_pool_costs_no_call():
    learn_pool(KEY, None, make_dependencies(capacity=None))


def test_who_learns_at_the_same_time_as_another_adds_to_what_that_one_saved():
    deps = make_dependencies()
    save = deps.capacity.save_pool

    def save_after_another(pool):
        deps.capacity.save_pool = save
        learn_pool(KEY, GRANTED, deps)
        return save(pool)

    deps.capacity.save_pool = save_after_another
    learn_pool(KEY, REFUSED, deps)

    assert deps.capacity.load_pool(KEY).record == REFUSED(GRANTED(PoolRecord(str(KEY))))


def test_who_loses_again_and_again_loses_one_observation_and_says_so():
    deps = make_dependencies(log=(log := ListLog()))
    deps.capacity.save_pool = Mock(return_value=False)

    learn_pool(KEY, GRANTED, deps)

    assert deps.capacity.save_pool.call_count == 4
    reason = "others learned of it 4 times meanwhile"
    assert log.lines == [("not learned", {"offering": str(KEY), "reason": reason})]


@pytest.mark.parametrize("method", ["load_pool", "save_pool"])
def test_a_call_that_fails_loses_the_observation_and_nothing_else(story, method):
    setattr(story.deps.capacity, method, Mock(side_effect=TransientError("throttled")))

    job_id = story.launch()
    story.lose_host(job_id)
    story.settle()

    assert story.attempt(job_id).number == 2
    assert ("not learned", {"offering": str(KEY), "reason": "throttled"}) in story.log.lines


def test_a_save_that_took_effect_though_it_failed_counts_once():
    deps = make_dependencies()
    save = deps.capacity.save_pool

    def time_out(pool):
        save(pool)
        raise TransientError("timed out")

    deps.capacity.save_pool = time_out
    learn_pool(KEY, GRANTED, deps)
    deps.capacity.save_pool = save
    learn_pool(KEY, GRANTED, deps)

    assert deps.capacity.load_pool(KEY).version == 1


def test_the_start_and_the_interruption_of_a_run_are_learned(story):
    job_id = story.launch()
    assert (known(story).has_capacity, known(story).spell_ends) == (True, 0.0)

    story.clock.advance(2 * HOUR)
    story.lose_host(job_id)

    assert (known(story).has_capacity, known(story).spell_ends) == (False, 1.0)


def test_a_run_that_ends_by_itself_ends_no_spell(story):
    job_id = story.launch()
    story.clock.advance(HOUR)
    story.end(job_id, 0)

    record = known(story)
    assert (record.has_capacity, record.seen_at, record.spell_ends) == (True, pool_hours(story.now), 0.0)
    assert record.spell_expected > 1.0


def test_a_capacity_provider_that_gets_no_instance_is_a_refusal(story):
    story.tasks.outcomes.append(make_failed_placement("RESOURCE:GPU"))

    story.submit()
    story.settle()

    assert known(story, make_offering_key()).has_capacity is False


def test_only_a_refusal_for_lack_of_capacity_says_that_a_pool_has_none():
    own = MachineStory()
    own.fleet.refused[G5] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    own.submit()
    own.settle_all()
    before = known(own, G5)
    assert before.has_capacity is False

    own.fleet.refused[G5] = (RefusalKind.UNSUPPORTED, "Unsupported")
    own.clock.advance(HOUR)
    own.settle_all()

    assert known(own, G5) == before
