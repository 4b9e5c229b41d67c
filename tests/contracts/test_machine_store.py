"""The behaviour of MachineStore: the fake and the adapter; test_job_store.py has machines that are saved with jobs."""

from dataclasses import replace
from datetime import timedelta

import pytest

from contracts.conftest import HOUR, Stores, create
from fakes.builders import NOW, make_job, make_offering_key
from fakes.stored_machines import change, follow, make_claim, make_gone, make_machine, save
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineDecision, MachineTotals
from relaunch.core.machines.machine import DeregisterNode, Machine, MachineState, Resources
from relaunch.core.machines.starts import Starts, Worth
from relaunch.core.offerings.capacity_memory import image_scope
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.ports import MachineLimitError, MachineStore, StaleWriteError, StartsChangedError


@pytest.fixture
def store(stores: Stores) -> MachineStore:
    return stores.machines


class TestSaving:
    def test_a_new_machine_is_loaded_as_it_was_with_version_1(self, store: MachineStore) -> None:
        machine = make_machine(claims=(make_claim(),))
        assert save(store, machine) == replace(machine, version=1)
        assert store.load_machine("m-1") == replace(machine, version=1)

    def test_a_saved_machine_has_the_next_version(self, store: MachineStore) -> None:
        machine = save(store)
        saved = follow(store, machine, state=MachineState.STARTING, instance_id="i-1")
        assert saved == replace(machine, state=MachineState.STARTING, instance_id="i-1", version=2)
        assert store.load_machine("m-1") == saved

    def test_an_unknown_machine_is_none(self, store: MachineStore) -> None:
        save(store, make_machine("m-10"))
        assert store.load_machine("m-1") is None

    def test_a_machine_that_exists_is_not_made_again(self, store: MachineStore) -> None:
        machine = save(store)
        with pytest.raises(StaleWriteError, match="machine m-1 is no longer at version 0"):
            save(store, make_machine(reason="another"))
        assert store.load_machine("m-1") == machine
        assert store.load_totals() == MachineTotals(1, 400_000)

    def test_a_write_from_an_older_version_is_stale_and_changes_nothing(self, store: MachineStore) -> None:
        first = save(store)
        newer = follow(store, first, reason="the first writer's")
        with pytest.raises(StaleWriteError, match="machine m-1 is no longer at version 1"):
            save(store, make_gone(first, instance_id="i-1"), first)
        assert store.load_machine("m-1") == newer
        assert store.load_totals() == MachineTotals(1, 400_000)
        assert store.find_by_instance("i-1") is None

    def test_a_write_of_an_unknown_machine_is_stale(self, store: MachineStore) -> None:
        with pytest.raises(StaleWriteError):
            save(store, make_machine(version=1))
        assert store.load_machine("m-1") is None

    def test_a_machine_that_nobody_would_look_at_again_is_refused(self, store: MachineStore) -> None:
        with pytest.raises(ValueError, match="machine m-1 is REQUESTED and has no wake_at"):
            save(store, make_machine(wake_at=None))
        assert store.load_totals() == MachineTotals()

    def test_a_machine_with_many_claims_comes_back_as_it_was(self, store: MachineStore) -> None:
        claims = tuple(make_claim(f"job-{number:060}") for number in range(100))
        machine = make_machine(claims=claims)
        save(store, machine)
        assert store.load_machine("m-1") == replace(machine, version=1)
        assert machine.free == Resources()


class TestCounters:
    def test_without_machines_nothing_is_counted(self, store: MachineStore) -> None:
        assert store.load_totals() == MachineTotals()

    def test_a_machine_counts_until_it_is_gone_at_its_price(self, store: MachineStore) -> None:
        machine = save(store)
        save(store, make_machine("m-2", usd_per_hour=1.006))
        assert store.load_totals() == MachineTotals(2, 1_406_000)
        machine = follow(store, machine, state=MachineState.STARTING, usd_per_hour=0.31)
        machine = follow(store, machine, state=MachineState.ENDING)
        assert store.load_totals() == MachineTotals(2, 1_316_000)
        save(store, make_gone(machine), machine)
        assert store.load_totals() == MachineTotals(1, 1_006_000)

    def test_a_decision_that_adds_nothing_leaves_the_counters(self, store: MachineStore) -> None:
        machine = save(store)
        store.save_machine(MachineDecision(machine))
        assert store.load_totals() == MachineTotals(1, 400_000)


class TestLimits:
    def test_the_last_machine_within_the_limit_is_saved_and_the_next_is_not(self, store: MachineStore) -> None:
        for number in (1, 2):
            store.save_machine(change(make_machine(f"m-{number}"), machines=2))
        with pytest.raises(MachineLimitError) as refused:
            store.save_machine(change(make_machine("m-3", instance_id="i-3"), machines=2))
        assert refused.value.limit == "machines"
        assert store.load_machine("m-3") is None
        assert store.find_by_instance("i-3") is None
        assert store.load_totals() == MachineTotals(2, 800_000)

    def test_the_price_that_meets_the_limit_is_saved_and_a_higher_one_is_not(self, store: MachineStore) -> None:
        store.save_machine(change(make_machine("m-1"), micro_usd_per_hour=800_000))
        with pytest.raises(MachineLimitError) as refused:
            store.save_machine(change(make_machine("m-2", usd_per_hour=0.400001), micro_usd_per_hour=800_000))
        assert refused.value.limit == "usd_per_hour"
        store.save_machine(change(make_machine("m-2"), micro_usd_per_hour=800_000))
        assert store.load_totals() == MachineTotals(2, 800_000)

    def test_the_first_machine_has_limits_too(self, store: MachineStore) -> None:
        with pytest.raises(MachineLimitError) as refused:
            store.save_machine(change(make_machine(), machines=1, micro_usd_per_hour=399_999))
        assert refused.value.limit == "usd_per_hour"
        assert store.load_totals() == MachineTotals()
        store.save_machine(change(make_machine(), machines=1, micro_usd_per_hour=400_000))
        assert store.load_totals() == MachineTotals(1, 400_000)

    def test_of_two_limits_that_are_exceeded_the_number_is_named(self, store: MachineStore) -> None:
        save(store)
        with pytest.raises(MachineLimitError) as refused:
            store.save_machine(change(make_machine("m-2"), machines=1, micro_usd_per_hour=1))
        assert refused.value.limit == "machines"

    def test_zero_is_no_limit(self, store: MachineStore) -> None:
        for number in range(3):
            store.save_machine(change(make_machine(f"m-{number}"), machines=0, micro_usd_per_hour=0))
        assert store.load_totals().machines == 3

    def test_without_limits_the_counters_may_pass_those_of_others(self, store: MachineStore) -> None:
        store.save_machine(change(make_machine("m-1"), machines=1))
        decision = change(make_machine("m-2"))
        store.save_machine(replace(decision, limits=None))
        assert store.load_totals().machines == 2

    def test_limits_hold_although_nothing_is_added(self, store: MachineStore) -> None:
        machine = save(store)
        save(store, make_machine("m-2"))
        with pytest.raises(MachineLimitError):
            store.save_machine(change(replace(machine, reason="-"), machine, machines=1))
        assert store.load_machine("m-1") == machine
        store.save_machine(change(replace(machine, reason="-"), machine, machines=2))

    def test_a_machine_that_is_gone_makes_room_for_another(self, store: MachineStore) -> None:
        machine = save(store)
        with pytest.raises(MachineLimitError):
            store.save_machine(change(make_machine("m-2"), machines=1))
        save(store, make_gone(machine), machine)
        store.save_machine(change(make_machine("m-2"), machines=1))

    def test_a_stale_write_is_said_to_be_stale_even_when_the_limit_is_reached(self, store: MachineStore) -> None:
        save(store)
        with pytest.raises(StaleWriteError):
            store.save_machine(change(make_machine(), machines=1))


class TestFinding:
    def test_a_machine_is_found_by_its_instance_once_that_is_known_and_after_its_end(self, store: MachineStore) -> None:
        machine = save(store)
        assert store.find_by_instance("i-1") is None
        machine = follow(store, machine, instance_id="i-1")
        machine = follow(store, machine, state=MachineState.READY)
        assert store.find_by_instance("i-1") == "m-1"
        assert store.find_by_instance("i-10") is None
        save(store, make_gone(machine), machine)
        assert store.find_by_instance("i-1") == "m-1"

    def test_an_instance_of_a_machine_lists_no_jobs(self, stores: Stores) -> None:
        save(stores.machines, make_machine(instance_id="i-1"))
        assert stores.jobs.load_on_instance("i-1") == []

    def test_machines_are_due_when_their_time_has_come_the_most_overdue_first(self, store: MachineStore) -> None:
        for machine_id, minutes in (("a", 3), ("b", 1), ("c", 2), ("d", 4)):
            save(store, make_machine(machine_id, wake_at=NOW + timedelta(minutes=minutes)))
        assert store.load_due(NOW + timedelta(minutes=3), 10) == ["b", "c", "a"]
        assert store.load_due(NOW + timedelta(minutes=3), 2) == ["b", "c"]
        assert store.load_due(NOW, 10) == []

    def test_machines_that_live_are_found_and_those_that_are_gone_while_effects_are_pending(
        self, store: MachineStore
    ) -> None:
        machines = {name: save(store, make_machine(name)) for name in ("a", "b", "c", "d")}
        assert sorted(store.load_living(10)) == ["a", "b", "c", "d"]
        assert len(store.load_living(2)) == 2
        follow(store, machines["a"], state=MachineState.ENDING)
        save(store, make_gone(machines["b"]), machines["b"])
        pending = (DeregisterNode("node"),)
        gone = save(store, make_gone(machines["c"], pending=pending), machines["c"])
        assert sorted(store.load_living(10)) == ["a", "c", "d"]
        assert store.load_due(NOW, 10) == ["c"]
        save(store, replace(gone, pending=()), gone)
        assert sorted(store.load_living(10)) == ["a", "d"]
        assert store.load_due(NOW, 10) == []

    def test_machines_with_room_are_found_the_oldest_first(self, store: MachineStore) -> None:
        for machine_id, hours in (("a", 3), ("b", 1), ("c", 2)):
            save(store, make_machine(machine_id, created_at=NOW + hours * HOUR))
        assert store.load_with_room(10) == ["b", "c", "a"]
        assert store.load_with_room(1) == ["b"]

    def test_a_machine_has_room_until_it_is_full_warned_or_ends(self, store: MachineStore) -> None:
        machine = save(store, make_machine(claims=(make_claim("a"),)))
        assert store.load_with_room(10) == ["m-1"]
        full = follow(store, machine, claims=(make_claim("a"), make_claim("b")))
        assert store.load_with_room(10) == []
        machine = follow(store, full, claims=(make_claim("b"),))
        assert store.load_with_room(10) == ["m-1"]
        warned = follow(store, machine, warned_at=NOW)
        assert store.load_with_room(10) == []
        machine = follow(store, warned, warned_at=None)
        assert store.load_with_room(10) == ["m-1"]
        follow(store, machine, state=MachineState.ENDING)
        assert store.load_with_room(10) == []

    def test_jobs_and_machines_are_found_apart(self, stores: Stores) -> None:
        job = create(stores.jobs, make_job(wake_at=NOW))
        stores.jobs.save_job(Decision(replace(job, has_slot=True), take_slot_limits=(5, 5)))
        save(stores.machines, make_machine(wake_at=NOW))
        assert stores.jobs.load_due(NOW, 10) == stores.jobs.load_open(10) == [job.job_id]
        assert stores.jobs.load_slot_holders(10) == [job.job_id]
        assert [summary.job_id for summary in stores.jobs.list_jobs(10)[0]] == [job.job_id]
        machines = stores.machines
        assert machines.load_due(NOW, 10) == machines.load_living(10) == machines.load_with_room(10) == ["m-1"]


class TestStarts:
    """What is known of a cause, saved with a new machine, and settled by what it turned out to be."""

    cause = image_scope(AmiKind.GPU)

    def start(self, store: MachineStore, machine_id: str, version: int = 0, limit: int = 0) -> Machine:
        new = make_machine(machine_id)
        starting = {**(store.load_starts()[self.cause].starting if version else {}), machine_id: NOW}
        starts = (Starts(self.cause, starting, version=version),)
        return store.save_machine(replace(change(new, machines=limit), starts=starts))

    def test_a_new_machine_counts_until_it_is_settled(self, store: MachineStore) -> None:
        machine = self.start(store, "m-1")
        assert store.load_starts() == {self.cause: Starts(self.cause, {"m-1": NOW}, version=1)}

        store.settle_start((self.cause,), machine, Worth.USELESS)
        useless = store.load_starts()
        assert useless == {self.cause: Starts(self.cause, useless={"m-1": NOW}, version=2)}

        store.settle_start((self.cause,), machine, Worth.USELESS)
        assert store.load_starts() == useless

        store.settle_start((self.cause,), machine, Worth.USEFUL)
        assert store.load_starts() == {self.cause: Starts(self.cause, useful_at=NOW, version=3)}

    def test_of_two_that_read_the_same_one_is_saved(self, store: MachineStore) -> None:
        self.start(store, "m-1")
        with pytest.raises(StartsChangedError):
            self.start(store, "m-2")
        assert store.load_machine("m-2") is None
        assert store.load_totals() == MachineTotals(1, 400_000)

        self.start(store, "m-2", version=1)
        assert set(store.load_starts()[self.cause].starting) == {"m-1", "m-2"}

    def test_the_limits_of_the_stack_come_first(self, store: MachineStore) -> None:
        self.start(store, "m-1")
        with pytest.raises(MachineLimitError):
            self.start(store, "m-2", limit=1)

    def test_with_a_job_it_is_the_same(self, stores: Stores) -> None:
        self.start(stores.machines, "m-1")
        job = create(stores.jobs, make_job())
        starts = (Starts(self.cause, {"m-2": NOW}),)
        decision = Decision(job, machines=(replace(change(make_machine("m-2")), starts=starts),))
        with pytest.raises(StartsChangedError):
            stores.jobs.save_job(decision)

    def test_a_cause_without_an_item_gets_one_with_its_first_machine_of_no_use(self, store: MachineStore) -> None:
        machine, pool = save(store), make_offering_key(zone="us-east-1a")
        for worth in (Worth.UNKNOWN, Worth.PLACED, Worth.USEFUL):
            store.settle_start((pool,), machine, worth)
        assert store.load_starts() == {}

        store.settle_start((pool,), machine, Worth.USELESS)
        assert store.load_starts() == {pool: Starts(pool, useless={"m-1": NOW}, version=1)}
