"""Concurrency groups in JobStore: the newest job of a group, and the one that holds it."""

from dataclasses import replace

import pytest

from contracts.conftest import HOUR, OVER, Stores
from fakes.builders import NOW, make_attempt, make_definition, make_job, make_timeline_entry
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.jobs.groups import GroupChange, GroupPlace, GroupStanding
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.groups import slot_of
from relaunch.ports import JobStore, SlotsFullError, StaleWriteError

DEFINITION = make_definition(concurrency=Concurrency("{branch}"))
TOGETHER = (5, 20)


@pytest.fixture
def store(stores: Stores) -> JobStore:
    return stores.jobs


def member(job_id: str, after: str = "", group: str = "main") -> Job:
    return make_job(job_id, definition=DEFINITION, group=GroupPlace(group, NOW, after))


def standing_of(job: Job, *, cancels: bool = False) -> GroupStanding:
    return GroupStanding(job.job_id, NOW, NOW + HOUR, cancels)


def enter(store: JobStore, job: Job) -> Job:
    assert store.create_job(job, [make_timeline_entry()], standing_of(job))
    return replace(job, version=1)


def launch(store: JobStore, job: Job) -> Job:
    held = replace(job, group=replace(job.group, is_holder=True), has_slot=True)
    launching = replace(held, state=JobState.LAUNCHING, waiting=None, attempt=make_attempt())
    return store.save_job(Decision(launching, take_slot_limits=TOGETHER, group_change=GroupChange.TAKE))


def end(store: JobStore, job: Job) -> Job:
    ended = replace(job, **OVER, group=replace(job.group, is_holder=False), has_slot=False)
    return store.save_job(Decision(ended, release_slot=True, group_change=GroupChange.RELEASE))


def test_nothing_is_known_of_a_group_without_jobs(store: JobStore) -> None:
    assert store.load_group("resnet#0") == GroupStanding()


def test_a_new_job_is_the_newest_one_of_its_group(store: JobStore) -> None:
    job = enter(store, member("resnet-1"))
    assert store.load_group(slot_of(job)) == GroupStanding("resnet-1", NOW, NOW + HOUR)
    assert store.load_job("resnet-1") == job


def test_whether_the_newest_one_cancels_is_kept(store: JobStore) -> None:
    job = member("resnet-1")
    assert store.create_job(job, [], standing_of(job, cancels=True))
    assert store.load_group(slot_of(job)).cancels
    later = member("resnet-2", "resnet-1")
    assert store.create_job(later, [], standing_of(later))
    assert not store.load_group(slot_of(job)).cancels


def test_groups_of_other_names_and_definitions_are_other_groups(store: JobStore) -> None:
    enter(store, member("resnet-1"))
    other = make_job("bert-1", definition=replace(DEFINITION, name="bert"), group=GroupPlace("main", NOW))
    for job in (other, member("resnet-2", group="fix")):
        assert store.load_group(slot_of(job)) == GroupStanding()
        enter(store, job)
    assert store.load_group(slot_of(member("resnet-1"))).newest == "resnet-1"


def test_a_job_that_another_one_came_before_is_not_created(store: JobStore) -> None:
    enter(store, member("resnet-1"))
    enter(store, member("resnet-2", "resnet-1"))
    for late in (member("resnet-3"), member("resnet-3", "resnet-1")):
        with pytest.raises(StaleWriteError):
            store.create_job(late, [], standing_of(late))
    assert store.load_job("resnet-3") is None
    assert store.load_group(slot_of(member("resnet-1"))).newest == "resnet-2"
    enter(store, member("resnet-3", "resnet-2"))


def test_a_job_whose_id_is_taken_changes_nothing_of_its_group(store: JobStore) -> None:
    enter(store, member("resnet-1"))
    enter(store, member("resnet-2", "resnet-1"))
    again = member("resnet-1", "resnet-2")
    assert store.create_job(again, [], standing_of(again)) is False
    assert store.load_group(slot_of(again)).newest == "resnet-2"


def test_a_job_may_be_created_without_a_place_in_its_group(store: JobStore) -> None:
    enter(store, member("resnet-2"))
    late = replace(member("resnet-1"), state=JobState.CANCELLED, waiting=None, wake_at=None, ended_at=NOW)
    assert store.create_job(late, [])
    assert store.load_group(slot_of(late)).newest == "resnet-2"


def test_the_newest_job_holds_the_group_until_its_end(store: JobStore) -> None:
    job = launch(store, enter(store, member("resnet-1")))
    assert store.load_group(slot_of(job)).holder == "resnet-1"
    loaded = store.load_job("resnet-1")
    assert loaded is not None
    assert loaded.group == GroupPlace("main", NOW, "", is_holder=True)
    end(store, job)
    assert store.load_group(slot_of(job)) == GroupStanding("resnet-1", NOW, NOW + HOUR)


def test_while_one_holds_the_group_a_newer_job_cannot(store: JobStore) -> None:
    first = launch(store, enter(store, member("resnet-1")))
    second = enter(store, member("resnet-2", "resnet-1"))
    with pytest.raises(SlotsFullError) as full:
        launch(store, second)
    assert full.value.cap == "group"
    assert store.load_job("resnet-2") == second
    assert store.load_group(slot_of(first)).holder == "resnet-1"
    end(store, first)
    launch(store, second)
    assert store.load_group(slot_of(first)).holder == "resnet-2"


def test_a_job_that_was_not_launched_cannot_be_when_a_newer_one_is_there(store: JobStore) -> None:
    first = enter(store, member("resnet-1"))
    enter(store, member("resnet-2", "resnet-1"))
    with pytest.raises(SlotsFullError) as full:
        launch(store, first)
    assert full.value.cap == "group"
    assert store.load_job("resnet-1") == first
    assert store.load_group(slot_of(first)).holder == ""


def test_a_full_definition_is_what_a_launch_is_refused_for_first(store: JobStore) -> None:
    first = enter(store, member("resnet-1"))
    enter(store, member("resnet-2", "resnet-1"))
    with pytest.raises(SlotsFullError) as full:
        store.save_job(Decision(first, take_slot_limits=(0, 20), group_change=GroupChange.TAKE))
    assert full.value.cap == "definition"


def test_a_group_that_was_forgotten_can_be_held(store: JobStore) -> None:
    job = member("resnet-1")
    assert store.create_job(job, [])
    launch(store, replace(job, version=1))
    assert store.load_group(slot_of(job)) == GroupStanding(holder="resnet-1")


def test_a_stale_write_is_said_before_a_group_that_others_hold(store: JobStore) -> None:
    first = launch(store, enter(store, member("resnet-1")))
    second = enter(store, member("resnet-2", "resnet-1"))
    store.save_job(Decision(second))
    with pytest.raises(StaleWriteError):
        launch(store, second)
    assert store.load_group(slot_of(first)).holder == "resnet-1"


@pytest.mark.parametrize(("job_id", "holder"), [("resnet-1", ""), ("resnet-2", "resnet-1")])
def test_only_the_job_that_holds_a_group_is_released(store: JobStore, job_id: str, holder: str) -> None:
    job = launch(store, enter(store, member("resnet-1")))
    store.release_group(slot_of(job), job_id)
    assert store.load_group(slot_of(job)) == GroupStanding("resnet-1", NOW, NOW + HOUR, holder=holder)


def test_a_group_that_nobody_knows_is_not_made_by_releasing_it(store: JobStore) -> None:
    store.release_group("resnet#0", "resnet-1")
    assert store.load_group("resnet#0") == GroupStanding()
