"""How a JobStore finds and lists jobs: the fake and the adapter."""

from dataclasses import replace
from datetime import timedelta

import pytest

from contracts.conftest import HOUR, OVER, Stores, create
from fakes.builders import NOW, make_attempt, make_job, make_offering_key, make_running_attempt, make_running_job
from relaunch.core.jobs.changes import ChangedPart, JobChange, Outbox
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.jobs.job import CAPACITY
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import JobStore, PermanentError


@pytest.fixture
def store(stores: Stores) -> JobStore:
    return stores.jobs


def waiting_for(slot: str) -> Waiting:
    return Waiting(WaitReason.SLOT, since=NOW, detail="the cap is reached", slot=slot)


class TestFindingJobs:
    def test_open_jobs_are_due_when_their_time_has_come_the_most_overdue_first(self, store: JobStore) -> None:
        for job_id, minutes in (("a", 3), ("b", 1), ("c", 2), ("d", 4)):
            create(store, make_job(job_id, wake_at=NOW + timedelta(minutes=minutes)))
        assert store.load_due(NOW + timedelta(minutes=3), 10) == ["b", "c", "a"]
        assert store.load_due(NOW + timedelta(minutes=3), 2) == ["b", "c"]
        assert store.load_due(NOW, 10) == []

    def test_a_fraction_of_a_second_counts(self, store: JobStore) -> None:
        create(store, make_job(wake_at=NOW + timedelta(microseconds=1)))
        assert store.load_due(NOW, 10) == []
        assert store.load_due(NOW + timedelta(microseconds=2), 10) == [make_job().job_id]

    def test_a_job_is_due_again_at_its_next_time_and_no_more_once_it_is_over(self, store: JobStore) -> None:
        job = create(store, make_job(wake_at=NOW))
        job = store.save_job(Decision(replace(job, wake_at=NOW + HOUR)))
        assert store.load_due(NOW, 10) == []
        assert store.load_due(NOW + HOUR, 10) == [job.job_id]
        store.save_job(Decision(replace(job, **OVER)))
        assert store.load_due(NOW + 2 * HOUR, 10) == []

    def test_a_job_that_is_over_is_due_while_effects_are_pending(self, store: JobStore) -> None:
        job = create(store, make_job())
        over = replace(job, **OVER, pending=(AdmitWaiting(),))
        job = store.save_job(Decision(over))
        assert store.load_due(NOW + 2 * HOUR, 10) == [job.job_id]
        store.save_job(Decision(replace(job, pending=())))
        assert store.load_due(NOW + 2 * HOUR, 10) == []

    def test_jobs_are_found_while_they_are_open_or_effects_are_pending(self, store: JobStore) -> None:
        jobs = [create(store, make_job(job_id)) for job_id in ("a", "b", "c")]
        assert sorted(store.load_open(10)) == ["a", "b", "c"]
        assert len(store.load_open(2)) == 2
        assert store.load_open(0) == []
        store.save_job(Decision(replace(jobs[0], **OVER)))
        pending = store.save_job(Decision(replace(jobs[1], **OVER, pending=(AdmitWaiting(),))))
        assert sorted(store.load_open(10)) == ["b", "c"]
        store.save_job(Decision(replace(pending, pending=())))
        assert store.load_open(10) == ["c"]

    def test_a_job_whose_changes_alone_are_left_is_due_after_the_open_ones_and_is_not_open(
        self, store: JobStore
    ) -> None:
        over = create(store, make_job("a"))
        job = create(store, make_job("b", wake_at=NOW + HOUR))
        ended = JobChange(1, NOW, JobState.SUCCEEDED, JobState.RUNNING, (ChangedPart.STATE,), "the program finished")
        over = store.save_job(Decision(replace(over, **OVER, outbox=Outbox(1, (ended,), NOW))))
        assert store.load_open(10) == [job.job_id]
        assert store.load_due(NOW, 10) == [over.job_id]
        assert store.load_due(NOW + HOUR, 10) == [job.job_id, over.job_id]
        assert store.load_due(NOW + HOUR, 1) == [job.job_id]
        store.save_job(Decision(replace(over, outbox=Outbox(1))))
        assert store.load_due(NOW + HOUR, 10) == [job.job_id]

    def test_jobs_wait_for_a_slot_the_oldest_first(self, store: JobStore) -> None:
        for job_id, minutes, slot in (("a", 3, "resnet"), ("b", 1, "resnet"), ("c", 2, "*"), ("d", 4, "resnet")):
            accepted_at = NOW + timedelta(minutes=minutes)
            create(store, make_job(job_id, accepted_at=accepted_at, waiting=waiting_for(slot)))
        create(store, make_job("e"))
        assert store.load_waiting("resnet", 10) == ["b", "a", "d"]
        assert store.load_waiting("resnet", 1) == ["b"]
        assert store.load_waiting("*", 10) == ["c"]
        assert store.load_waiting("bert", 10) == []

    def test_a_job_no_longer_waits_once_it_goes_on(self, store: JobStore) -> None:
        job = create(store, make_job(waiting=waiting_for("*")))
        job = store.save_job(Decision(replace(job, waiting=waiting_for("resnet"))))
        assert store.load_waiting("*", 10) == []
        assert store.load_waiting("resnet", 10) == [job.job_id]
        store.save_job(Decision(replace(job, state=JobState.LAUNCHING, waiting=None, attempt=make_attempt())))
        assert store.load_waiting("resnet", 10) == []

    def test_a_wait_that_names_no_slot_is_for_the_definitions_own(self, store: JobStore) -> None:
        job = create(store, make_job(waiting=waiting_for("")))
        assert store.load_waiting("resnet", 10) == [job.job_id]

    def test_jobs_that_wait_for_capacity_are_found_together(self, store: JobStore) -> None:
        for job_id, minutes in (("a", 3), ("b", 1)):
            waiting = Waiting(WaitReason.CAPACITY, since=NOW, detail="nothing to be had")
            create(store, make_job(job_id, accepted_at=NOW + timedelta(minutes=minutes), waiting=waiting))
        assert store.load_waiting(CAPACITY, 10) == ["b", "a"]
        assert store.load_waiting("resnet", 10) == []

    def test_a_job_that_keeps_its_slot_is_found_while_it_waits_for_capacity(self, store: JobStore) -> None:
        job = create(store, make_job())
        launching = replace(job, state=JobState.LAUNCHING, attempt=make_attempt(), has_slot=True)
        job = store.save_job(Decision(launching, take_slot_limits=(5, 5)))
        assert store.load_waiting(CAPACITY, 10) == []
        assert store.load_slot_holders(10) == [job.job_id]
        waiting = Waiting(WaitReason.CAPACITY, since=NOW, detail="nothing to be had")
        job = store.save_job(Decision(replace(job, state=JobState.WAITING, waiting=waiting)))
        assert store.load_waiting(CAPACITY, 10) == [job.job_id]
        assert store.load_slot_holders(10) == []
        store.save_job(Decision(replace(job, state=JobState.LAUNCHING, waiting=None)))
        assert store.load_waiting(CAPACITY, 10) == []
        assert store.load_slot_holders(10) == [job.job_id]

    def test_an_image_finds_the_jobs_that_wait_for_it(self, store: JobStore) -> None:
        for job_id, tag in (("a", "5e07"), ("b", "5e07"), ("c", "77aa")):
            create(store, make_job(job_id, image=("team/trainer", tag)))
        assert sorted(store.load_waiting_for_image("team/trainer", "5e07")) == ["a", "b"]
        assert store.load_waiting_for_image("team/trainer", "latest") == []

    def test_a_machine_finds_the_jobs_that_were_linked_to_it(self, store: JobStore) -> None:
        job = create(store, make_job())
        running = replace(job, attempt=make_running_attempt(instance_id="i-1"))
        job = store.save_job(Decision(running))
        assert store.load_on_instance("i-1") == []
        job = store.save_job(Decision(job, link_instance=True))
        store.save_job(Decision(job, link_instance=True))
        assert store.load_on_instance("i-1") == [job.job_id]
        assert store.load_on_instance("i-2") == []

    def test_a_machine_does_not_find_the_jobs_that_were_unlinked_from_it(self, store: JobStore) -> None:
        running = replace(create(store, make_job()), attempt=make_running_attempt(instance_id="i-1"))
        other = replace(create(store, make_job("other")), attempt=make_running_attempt(instance_id="i-1"))
        store.save_job(Decision(other, link_instance=True))
        job = store.save_job(Decision(running, link_instance=True))
        job = store.save_job(Decision(job, unlinked_instances=("i-1",)))
        assert store.load_on_instance("i-1") == ["other"]
        store.save_job(Decision(job, link_instance=True))
        assert sorted(store.load_on_instance("i-1")) == sorted([job.job_id, "other"])

    def test_the_warning_of_a_machine_is_kept_beside_its_jobs(self, store: JobStore) -> None:
        job = create(store, make_job())
        store.save_job(Decision(replace(job, attempt=make_running_attempt(instance_id="i-1")), link_instance=True))
        assert store.load_warning("i-1") is None
        for at in (NOW, NOW + timedelta(seconds=1)):
            store.save_warning("i-1", at)
        assert store.load_warning("i-1") == NOW + timedelta(seconds=1)
        assert store.load_warning("i-2") is None
        assert store.load_on_instance("i-1") == [job.job_id]


class TestListing:
    def test_jobs_are_listed_page_by_page_the_newest_first(self, store: JobStore) -> None:
        for number in range(5):
            create(store, make_job(f"resnet-{number}", accepted_at=NOW + timedelta(minutes=number)))
        first, cursor = store.list_jobs(2)
        second, cursor = store.list_jobs(2, cursor)
        third, end = store.list_jobs(2, cursor)
        assert end is None
        assert [[summary.job_id for summary in page] for page in (first, second, third)] == [
            ["resnet-4", "resnet-3"],
            ["resnet-2", "resnet-1"],
            ["resnet-0"],
        ]

    def test_a_page_that_ends_with_the_last_job_has_no_next_one(self, store: JobStore) -> None:
        create(store, make_job())
        assert store.list_jobs(1)[1] is None

    def test_without_jobs_the_list_is_empty(self, store: JobStore) -> None:
        assert store.list_jobs(10) == ([], None)

    def test_a_job_is_listed_as_it_is_now_also_when_it_is_over(self, store: JobStore) -> None:
        job = create(store, make_running_job(interruptions=2, failures=1, run_seconds=12.5, cost_usd=0.25))
        over = store.save_job(Decision(replace(job, **OVER, reason="exit code 0")))
        ((summary,), _) = store.list_jobs(10)
        assert summary == summarize_job(over)
        assert summary.offering == make_offering_key()

    @pytest.mark.parametrize("cursor", ["no cursor", "%%%", "e30=", "W10="])
    def test_a_cursor_that_is_none_of_ours_is_refused(self, store: JobStore, cursor: str) -> None:
        create(store, make_job())
        with pytest.raises(PermanentError, match="cursor"):
            store.list_jobs(10, cursor)
