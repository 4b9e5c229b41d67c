"""The behaviour of JobStore: the fake and the adapter."""

from dataclasses import replace
from datetime import date

import pytest

from contracts.conftest import HOUR, OVER, Stores, create
from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_job,
    make_placement,
    make_running_attempt,
    make_running_job,
    make_selection,
    make_timeline_entry,
)
from fakes.stored_machines import change, follow, make_claim, make_gone, make_machine, save
from relaunch.core.jobs.attempt import PlacementState, Stop, StopKind
from relaunch.core.jobs.cost import CostEntry, CostKey
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.charges import DayCost
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.selection.selection import explain_rows
from relaunch.ports import JobHistory, JobStore, MachineLimitError, MachineTakenError, SlotsFullError, StaleWriteError


@pytest.fixture
def store(stores: Stores) -> JobStore:
    return stores.jobs


def history_of(store: JobStore, job: Job) -> JobHistory:
    history = store.load_history(job.job_id)
    assert history is not None
    return history


def names(store: JobStore, job: Job) -> list[str]:
    return [entry.event for entry in history_of(store, job).timeline]


class TestCreating:
    def test_a_created_job_is_loaded_as_it_was_with_version_1(self, store: JobStore) -> None:
        job = make_job()
        assert store.create_job(job, [make_timeline_entry()]) is True
        assert store.load_job(job.job_id) == replace(job, version=1)

    def test_a_job_whose_id_is_taken_is_not_created_and_changes_nothing(self, store: JobStore) -> None:
        job = create(store, make_job())
        again = make_job(inputs={"learning_rate": "0.2"}, image=("trainer", "5e07"))
        assert store.create_job(again, [make_timeline_entry("accepted again")]) is False
        assert store.load_job(job.job_id) == job
        assert names(store, job) == ["accepted"]
        assert store.load_waiting_for_image("trainer", "5e07") == []

    def test_an_unknown_job_is_none(self, store: JobStore) -> None:
        create(store, make_job("resnet-1"))
        assert store.load_job("resnet") is None
        assert store.load_history("resnet") is None

    def test_an_open_job_that_nobody_would_look_at_again_is_refused(self, store: JobStore) -> None:
        with pytest.raises(ValueError, match="has no wake_at"):
            store.create_job(make_job(wake_at=None), [])
        job = create(store, make_job())
        with pytest.raises(ValueError, match="has no wake_at"):
            store.save_job(Decision(replace(job, wake_at=None)))


class TestSaving:
    def test_a_saved_job_has_the_next_version_and_is_loaded_with_its_attempt(self, store: JobStore) -> None:
        job = create(store, make_job())
        launching = replace(job, state=JobState.LAUNCHING, waiting=None, attempt=make_attempt())
        saved = store.save_job(Decision(launching))
        assert saved == replace(launching, version=2)
        assert store.load_job(job.job_id) == saved

    def test_the_newest_attempt_is_the_current_one_and_all_are_kept(self, store: JobStore) -> None:
        job = create(store, make_job())
        attempts = [make_running_attempt(number, zone=f"us-east-1{number}") for number in (1, 2, 3)]
        for attempt in attempts:
            job = store.save_job(Decision(replace(job, attempt=attempt)))
        assert store.load_job(job.job_id) == replace(job, attempt=attempts[2])
        history = history_of(store, job)
        assert history.job == job
        assert history.attempts == tuple(attempts)

    def test_the_tasks_of_a_job_are_those_of_its_attempts(self, store: JobStore) -> None:
        job = create(store, make_job())
        ended = replace(make_running_attempt(1), stop=Stop(StopKind.INTERRUPTION, NOW))
        for attempt in (ended, make_running_attempt(2)):
            job = store.save_job(Decision(replace(job, attempt=attempt), (make_timeline_entry(),)))

        runs = store.load_runs(job.job_id)

        assert runs is not None
        assert (runs.job.job_id, runs.job.state, runs.job.ended_at) == (job.job_id, job.state, job.ended_at)
        assert runs.job.definition == (job.definition.target, job.definition.container, 1)
        assert runs.job.revision == (job.revision.arn, tuple((each.name,) for each in job.revision.containers))
        assert runs.attempts == ((1, (ended.task_id,), (NOW,)), (2, (job.current_attempt.task_id,), None))
        assert store.load_runs("resnet") is None

    def test_the_runs_of_a_job_say_how_many_nodes_it_has(self, store: JobStore) -> None:
        job = create(store, make_job(definition=make_definition(nodes=3)))

        runs = store.load_runs(job.job_id)

        assert runs is not None
        assert runs.job.definition.nodes == 3

    def test_a_job_that_lays_its_attempt_aside_is_loaded_without_one(self, store: JobStore) -> None:
        job = store.save_job(Decision(replace(create(store, make_job()), attempt=make_attempt())))
        job = store.save_job(Decision(replace(job, attempt=None)))
        assert store.load_job(job.job_id) == job

    def test_the_timeline_is_kept_in_order(self, store: JobStore) -> None:
        job = create(store, make_job())
        for number in range(12):
            entries = (make_timeline_entry(f"{number}a"), make_timeline_entry(f"{number}b", attempt_number=1))
            job = store.save_job(Decision(job, entries))
        assert names(store, job) == ["accepted", *(f"{number}{half}" for number in range(12) for half in "ab")]

    def test_a_write_from_an_older_version_is_stale_and_changes_nothing(self, store: JobStore) -> None:
        job = create(store, make_job())
        newer = store.save_job(Decision(replace(job, reason="the first writer's"), (make_timeline_entry("first"),)))
        late = Decision(
            replace(job, reason="the late writer's", attempt=make_running_attempt(), has_slot=True),
            (make_timeline_entry("late"),),
            selection=make_selection(),
            selected_at=NOW,
            take_slot_limits=(1, 1),
            link_instance=True,
        )
        with pytest.raises(StaleWriteError, match=job.job_id):
            store.save_job(late)
        assert store.load_job(job.job_id) == newer
        assert names(store, job) == ["accepted", "first"]
        assert store.load_on_instance("i-0123456789abcdef0") == []
        other = create(store, make_job("resnet-other"))
        store.save_job(Decision(other, take_slot_limits=(1, 1)))

    def test_a_write_of_an_unknown_job_is_stale(self, store: JobStore) -> None:
        with pytest.raises(StaleWriteError):
            store.save_job(Decision(make_job(version=1)))
        assert store.load_job(make_job().job_id) is None


class TestSelections:
    def test_the_selection_of_a_frozen_try_is_kept_whole(self, store: JobStore) -> None:
        selection = make_selection()
        job = replace(create(store, make_job()), attempt=make_attempt(2, placement=make_placement(3)))
        store.save_job(Decision(job, selection=selection, selected_at=NOW))
        (stored,) = history_of(store, job).selections
        assert (stored.attempt_number, stored.placement_number, stored.selected_at) == (2, 3, NOW)
        assert stored.rows == explain_rows(selection)
        assert stored.filter_counts == selection.filter_counts

    def test_a_job_that_waits_keeps_the_latest_selection_of_its_next_try(self, store: JobStore) -> None:
        nothing = make_selection(kept=())
        closed = make_placement(state=PlacementState.CLOSED)
        job = create(store, make_job())
        job = store.save_job(Decision(job, selection=nothing, selected_at=NOW))
        job = store.save_job(Decision(job, selection=nothing, selected_at=NOW + HOUR))
        frozen = replace(job, attempt=make_attempt())
        job = store.save_job(Decision(frozen, selection=make_selection(), selected_at=NOW + 2 * HOUR))
        job = replace(job, attempt=make_attempt(placement=closed))
        job = store.save_job(Decision(job, selection=nothing, selected_at=NOW + 3 * HOUR))
        job = replace(job, attempt=make_running_attempt())
        store.save_job(Decision(job, selection=nothing, selected_at=NOW + 4 * HOUR))
        selections = history_of(store, job).selections
        found = [(each.attempt_number, each.placement_number, each.selected_at) for each in selections]
        assert found == [(1, 1, NOW + 2 * HOUR), (1, 2, NOW + 3 * HOUR), (2, 1, NOW + 4 * HOUR)]


class TestSlots:
    def take(self, store: JobStore, job_id: str, limits: tuple[int, int], definition: str = "resnet") -> Job:
        job = create(store, make_job(job_id, definition=make_definition(name=definition)))
        return store.save_job(Decision(replace(job, has_slot=True), take_slot_limits=limits))

    def test_a_definition_runs_no_more_jobs_than_its_cap(self, store: JobStore) -> None:
        self.take(store, "resnet-1", (2, 9))
        self.take(store, "resnet-2", (2, 9))
        with pytest.raises(SlotsFullError) as full:
            self.take(store, "resnet-3", (2, 9))
        assert (full.value.cap, full.value.limit) == ("definition", 2)
        self.take(store, "bert-1", (2, 9), definition="bert")

    def test_the_stack_runs_no_more_jobs_than_its_cap(self, store: JobStore) -> None:
        self.take(store, "resnet-1", (5, 2))
        self.take(store, "bert-1", (5, 2), definition="bert")
        with pytest.raises(SlotsFullError) as full:
            self.take(store, "gpt-1", (5, 2), definition="gpt")
        assert (full.value.cap, full.value.limit) == ("stack", 2)

    def test_without_a_slot_nothing_is_written(self, store: JobStore) -> None:
        self.take(store, "resnet-1", (5, 1))
        job = create(store, make_job("resnet-2"))
        denied = Decision(
            replace(job, attempt=make_running_attempt()),
            (make_timeline_entry("launching"),),
            take_slot_limits=(5, 1),
            link_instance=True,
        )
        with pytest.raises(SlotsFullError):
            store.save_job(denied)
        assert store.load_job("resnet-2") == job
        assert names(store, job) == ["accepted"]
        assert store.load_on_instance("i-0123456789abcdef0") == []
        # The definition's own slot was not taken either.
        self.take(store, "resnet-3", (2, 9))

    def test_a_cap_of_zero_lets_nobody_in(self, store: JobStore) -> None:
        with pytest.raises(SlotsFullError) as full:
            self.take(store, "resnet-1", (5, 0))
        assert full.value.cap == "stack"
        with pytest.raises(SlotsFullError):
            self.take(store, "resnet-2", (0, 5))

    def test_who_has_a_slot_is_told_until_it_is_given_back(self, store: JobStore) -> None:
        assert store.load_slot_holders(9) == []
        for job_id in ("b", "a"):
            job = create(store, make_job(job_id))
            job = store.save_job(Decision(replace(job, has_slot=True), take_slot_limits=(5, 5)))
        assert sorted(store.load_slot_holders(9)) == ["a", "b"]
        assert len(store.load_slot_holders(1)) == 1
        store.save_job(Decision(replace(job, has_slot=False), release_slot=True))
        assert store.load_slot_holders(9) == ["b"]

    def test_a_slot_given_back_is_free(self, store: JobStore) -> None:
        job = self.take(store, "resnet-1", (1, 1))
        store.save_job(Decision(replace(job, **OVER, has_slot=False), release_slot=True))
        self.take(store, "resnet-2", (1, 1))
        with pytest.raises(SlotsFullError):
            self.take(store, "resnet-3", (1, 1))

    def test_a_stale_write_neither_takes_a_slot_nor_gives_one_back(self, store: JobStore) -> None:
        held = self.take(store, "resnet-1", (2, 2))
        waiting = create(store, make_job("resnet-2"))
        for stale in (
            Decision(replace(held, version=held.version - 1), release_slot=True),
            Decision(replace(waiting, version=0), take_slot_limits=(9, 9)),
        ):
            with pytest.raises(StaleWriteError):
                store.save_job(stale)
        self.take(store, "resnet-3", (2, 2))
        with pytest.raises(SlotsFullError):
            self.take(store, "resnet-4", (2, 2))

    def test_a_stale_write_is_said_to_be_stale_even_when_the_cap_is_reached(self, store: JobStore) -> None:
        self.take(store, "resnet-1", (1, 1))
        job = create(store, make_job("resnet-2"))
        store.save_job(Decision(job))
        with pytest.raises(StaleWriteError):
            store.save_job(Decision(job, take_slot_limits=(1, 1)))


class TestSavingWithMachines:
    def test_a_machine_is_requested_for_a_job(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job())
        machine = make_machine(claims=(make_claim(job.job_id),))
        saved = stores.jobs.save_job(Decision(job, machines=(change(machine, machines=1),)))
        assert saved.version == 2
        assert stores.machines.load_machine("m-1") == replace(machine, version=1)
        assert stores.machines.load_totals() == MachineTotals(1, 400_000)
        assert stores.machines.load_living(10) == ["m-1"]

    def test_one_machine_is_released_and_another_claimed(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job())
        left = save(stores.machines, make_machine("left", claims=(make_claim(job.job_id),)))
        taken = save(stores.machines, make_machine("taken", instance_id="i-1"))
        moved = (
            change(replace(left, claims=()), left),
            change(replace(taken, claims=(make_claim(job.job_id),)), taken),
        )
        stores.jobs.save_job(Decision(job, machines=moved))
        loaded = [stores.machines.load_machine(name) for name in ("left", "taken")]
        assert [each and [claim.job_id for claim in each.claims] for each in loaded] == [[], [job.job_id]]
        assert [each and each.version for each in loaded] == [2, 2]
        assert stores.machines.load_totals() == MachineTotals(2, 800_000)

    @pytest.mark.parametrize("is_new", [True, False])
    def test_a_machine_that_somebody_changed_is_taken_and_nothing_is_written(
        self, stores: Stores, is_new: bool
    ) -> None:
        job = create(stores.jobs, make_running_job())
        known = save(stores.machines)
        newer = follow(stores.machines, known, claims=(make_claim("another"),))
        other = save(stores.machines, make_machine("other"))
        claimed = replace(make_machine() if is_new else known, claims=(make_claim(job.job_id),), instance_id="i-1")
        late = Decision(
            replace(job, reason="late"),
            (make_timeline_entry("late"),),
            take_slot_limits=(5, 5),
            link_instance=True,
            machines=(change(replace(other, reason="late"), other), change(claimed, None if is_new else known)),
        )
        with pytest.raises(MachineTakenError) as taken:
            stores.jobs.save_job(late)
        assert taken.value.machine_id == "m-1"
        assert stores.jobs.load_job(job.job_id) == job
        assert stores.jobs.load_on_instance("i-0123456789abcdef0") == []
        assert stores.machines.load_machine("m-1") == newer
        assert stores.machines.load_machine("other") == other
        assert stores.machines.find_by_instance("i-1") is None
        assert stores.machines.load_totals() == MachineTotals(2, 800_000)
        # Its slot was not taken either.
        another = create(stores.jobs, make_job("another"))
        stores.jobs.save_job(Decision(another, take_slot_limits=(1, 1)))

    def test_a_limit_keeps_the_job_as_it_is(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job())
        save(stores.machines)
        with pytest.raises(MachineLimitError) as refused:
            stores.jobs.save_job(
                Decision(job, take_slot_limits=(5, 5), machines=(change(make_machine("m-2"), micro_usd_per_hour=1),))
            )
        assert refused.value.limit == "usd_per_hour"
        assert stores.jobs.load_job(job.job_id) == job
        assert stores.machines.load_machine("m-2") is None
        stores.jobs.save_job(Decision(job, take_slot_limits=(1, 1)))

    def test_the_machines_of_one_decision_are_limited_together(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job())
        new = [change(make_machine(f"m-{number}"), machines=2) for number in range(3)]
        with pytest.raises(MachineLimitError):
            stores.jobs.save_job(Decision(job, machines=tuple(new)))
        stores.jobs.save_job(Decision(job, machines=tuple(new[:2])))
        assert stores.machines.load_totals() == MachineTotals(2, 800_000)

    def test_one_that_is_gone_makes_room_for_another_in_the_same_decision(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job())
        old = save(stores.machines)
        swapped = (change(make_gone(old), old), change(make_machine("m-2"), machines=1))
        stores.jobs.save_job(Decision(job, machines=swapped))
        assert stores.machines.load_totals() == MachineTotals(1, 400_000)
        assert stores.machines.load_living(10) == ["m-2"]

    def test_two_decisions_about_one_machine_are_refused(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job())
        with pytest.raises(ValueError, match="more than one decision about a machine: m-1, m-1"):
            stores.jobs.save_job(Decision(job, machines=(change(make_machine()), change(make_machine()))))
        assert stores.jobs.load_job(job.job_id) == job

    def test_of_several_conditions_that_fail_the_first_is_named(self, stores: Stores) -> None:
        machine = save(stores.machines)
        follow(stores.machines, machine, reason="newer")
        full = create(stores.jobs, make_job("full", definition=make_definition(name="full")))
        full = stores.jobs.save_job(Decision(full, take_slot_limits=(1, 1)))
        job = create(stores.jobs, make_job())
        everything = Decision(
            job, take_slot_limits=(1, 1), machines=(change(machine, machine), change(make_machine("new"), machines=1))
        )
        with pytest.raises(StaleWriteError, match=f"job {job.job_id}"):
            stores.jobs.save_job(replace(everything, job=replace(job, version=0)))
        with pytest.raises(SlotsFullError) as slots:
            stores.jobs.save_job(everything)
        assert slots.value.cap == "stack"
        with pytest.raises(MachineTakenError):
            stores.jobs.save_job(replace(everything, take_slot_limits=(9, 9)))
        with pytest.raises(MachineLimitError):
            stores.jobs.save_job(replace(everything, take_slot_limits=(9, 9), machines=everything.machines[1:]))
        assert stores.jobs.load_job(job.job_id) == job


class TestCosts:
    KEY = CostKey("resnet", "acme/vision", "github", "g5.xlarge", "spot")
    OTHER = CostKey("resnet", "", "s3", "", "")

    def test_costs_are_added_up_by_key_and_day_with_the_job(self, store: JobStore) -> None:
        first = date(2026, 11, 29)
        second = date(2026, 11, 30)
        third = date(2026, 12, 1)
        job = create(store, make_job())
        once = CostEntry(self.KEY, (DayCost(second, 0.25, 1.0, 0.5), DayCost(third, 0.5, 2.0, 1.0, 1.0)))
        twice = CostEntry(self.KEY, (DayCost(second, 0.125, 0.5, 0.25),))
        job = store.save_job(Decision(job, costs=(once, twice)))
        job = store.save_job(Decision(job, costs=(CostEntry(self.KEY, (DayCost(second, -0.125, 0.0, 0.0),)),)))
        other = CostEntry(self.OTHER, (DayCost(first, 3.0, 3.0, 1.0),))
        store.save_job(Decision(job, costs=(other, CostEntry(self.KEY, ()))))

        found = {(each.key, each.days[0].day.month): each.days for each in store.load_costs(first, third)}
        assert found == {
            (self.KEY, 11): (DayCost(second, 0.25, 1.5, 0.75),),
            (self.KEY, 12): once.days[1:],
            (self.OTHER, 11): other.days,
        }
        assert store.load_costs(third, third) == [CostEntry(self.KEY, once.days[1:])]
        assert store.load_costs(date(2025, 1, 1), date(2025, 1, 31)) == []

    def test_a_save_that_fails_adds_no_costs(self, store: JobStore) -> None:
        job = create(store, make_job())
        store.save_job(Decision(job))
        entry = CostEntry(self.KEY, (DayCost(date(2026, 11, 29), 1.0, 1.0, 1.0),))
        with pytest.raises(StaleWriteError):
            store.save_job(Decision(job, costs=(entry,)))
        assert store.load_costs(date(2026, 11, 1), date(2026, 11, 30)) == []
