from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.builders import (
    NOW,
    make_capacity_failure,
    make_definition,
    make_instance_type,
    make_job,
    make_offering,
    make_offering_key,
    make_placement,
    make_running_attempt,
    make_running_job,
    make_timeline_entry,
)
from fakes.cli_session import FakePlacementScores
from fakes.dependencies import make_dependencies
from fakes.jobs import InMemoryJobs, make_unreadable
from fakes.sources import FakeOfferings
from relaunch.adapters.offerings.bundled import load_peaks
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.offerings.quotas import QuotaUsage
from relaunch.core.offerings.snapshot import Origin, SnapshotPart
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from relaunch.core.selection.expected_cost import GP3_USD_PER_GIB_MONTH
from relaunch.ports import PermanentError
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.load_offerings import load_offerings, with_placement_scores
from relaunch.usecases.plan_jobs import plan_jobs

G_SPOT = "L-3819A6DF"


def offered_with(spot: float, **others: float) -> FakeOfferings:
    """Offer the usual in an account with this quota of spot, and others by their codes without `L-`."""
    offerings = FakeOfferings()
    quotas = {G_SPOT: spot, **{f"L-{code}": vcpus for code, vcpus in others.items()}}
    offerings.refreshed = offerings.refreshed.with_part(SnapshotPart.QUOTAS, quotas, Origin("Service Quotas", NOW))
    return offerings


@pytest.fixture
def jobs() -> InMemoryJobs:
    """Return an empty table that counts the jobs that are loaded, and how often the slots are."""
    jobs = InMemoryJobs()
    jobs.load_job = Mock(wraps=jobs.load_job)
    jobs.load_slot_holders = Mock(wraps=jobs.load_slot_holders)
    return jobs


def start(jobs: InMemoryJobs, *job_ids: str, instance_type: str = "g5.xlarge") -> None:
    placed = make_placement(offering=make_offering_key(instance_type), state=PlacementState.PLACED)
    for job_id in job_ids:
        job = make_running_job(job_id, attempt=make_running_attempt(placement=placed, instance_id=f"i-{job_id}"))
        assert jobs.create_job(make_job(job_id), [make_timeline_entry()])
        jobs.save_job(Decision(replace(job, version=1), take_slot_limits=(999, 999)))


def quotas_of(jobs: InMemoryJobs, offerings: FakeOfferings, own_job_id: str = "") -> Mapping[str, QuotaUsage]:
    return load_offerings(make_dependencies(jobs=jobs, offerings=offerings), own_job_id).limits.quotas


def test_memory_and_offerings_are_those_of_now() -> None:
    failure = make_capacity_failure()
    deps = make_dependencies()
    deps.capacity.remember(failure)

    available = load_offerings(deps)

    assert available.at == NOW
    assert available.offerings == deps.offerings.offerings(NOW)
    assert available.memory == {failure.offering: failure}
    assert available.limits == replace(deps.limits.selection, peaks=load_peaks())


def test_the_rates_and_doubts_are_those_of_the_runs_so_far() -> None:
    deps = make_dependencies()
    key = make_offering_key(zone="us-east-1b")
    deps.capacity.count_run(SpotRun(key, "a/1/1", Observed.INTERRUPTION, NOW, 0.5))

    available = load_offerings(deps)

    before = {each.key: each.interruption_rate for each in deps.offerings.offerings(NOW)}
    rates = {each.key: each.interruption_rate for each in available.offerings}
    assert [key for key, rate in rates.items() if rate > before[key]] == [make_offering_key()]
    assert available.shortage_risks == {key: 1, make_offering_key(): 1}


def test_spot_offerings_of_the_types_asked_about_get_the_scores_of_their_zones() -> None:
    offerings = (
        make_offering("g5.xlarge", zone="us-east-1a"),
        make_offering("g6.xlarge", zone="us-east-1b"),
        make_offering("g6.xlarge", zone="us-east-1c"),
        make_offering("g4dn.xlarge", zone="us-east-1a"),
        make_offering("g5.xlarge", PurchaseOption.ON_DEMAND, zone="us-east-1a"),
    )
    scores = FakePlacementScores({"us-east-1a": 2, "us-east-1b": 8})

    rated = with_placement_scores(offerings, scores, {"g5.xlarge", "g6.xlarge"})

    assert [offering.placement_score for offering in rated] == [2, 8, None, None, None]
    assert scores.asked == [{"g5.xlarge", "g6.xlarge"}]


def test_disks_cost_what_the_region_asks_for_them_where_that_is_known() -> None:
    offerings = FakeOfferings()
    unknown = load_offerings(make_dependencies(offerings=offerings)).limits.gp3_usd_per_gib_month
    offerings.refreshed = offerings.refreshed.with_part(SnapshotPart.DISK_PRICE, 0.152, Origin("AWS Price List", NOW))

    assert unknown == GP3_USD_PER_GIB_MONTH
    assert load_offerings(make_dependencies(offerings=offerings)).limits.gp3_usd_per_gib_month == 0.152


def test_quotas_as_last_refreshed_are_held_against_what_other_jobs_use(jobs: InMemoryJobs) -> None:
    start(jobs, "one", "two", "own")

    assert quotas_of(jobs, offered_with(11.0), "own") == {G_SPOT: QuotaUsage(11.0, 8.0)}


def test_machines_of_types_that_only_the_refreshed_snapshot_knows_use_quotas_too(jobs: InMemoryJobs) -> None:
    start(jobs, "one", instance_type="g99.xlarge")
    offerings = offered_with(7.0)
    rows = {"g99.xlarge": make_instance_type("g99.xlarge", vcpus=6)}
    offerings.refreshed = offerings.refreshed.with_part(SnapshotPart.INSTANCE_TYPES, rows, Origin("EC2", NOW))

    assert quotas_of(jobs, offerings) == {G_SPOT: QuotaUsage(7.0, 6.0)}


def test_a_job_that_cannot_be_read_keeps_no_other_from_its_launch(jobs: InMemoryJobs) -> None:
    start(jobs, "one", "two")
    make_unreadable(jobs, "one", PermanentError("job one cannot be read"))

    assert quotas_of(jobs, offered_with(11.0)) == {G_SPOT: QuotaUsage(11.0, 4.0)}


def test_quotas_that_are_not_known_reject_nothing_and_cost_no_read(jobs: InMemoryJobs) -> None:
    assert quotas_of(jobs, FakeOfferings()) == {}
    assert jobs.load_slot_holders.call_count == 0


def test_jobs_are_loaded_only_where_their_machines_could_use_a_quota_up(jobs: InMemoryJobs) -> None:
    start(jobs, "one", "two")

    assert quotas_of(jobs, offered_with(12.0)) == {G_SPOT: QuotaUsage(12.0)}
    assert jobs.load_job.call_count == 0

    assert quotas_of(jobs, offered_with(11.0)) == {G_SPOT: QuotaUsage(11.0, 8.0)}
    assert jobs.load_job.call_count == 2


def test_what_more_jobs_use_than_a_launch_can_read_is_left_to_ec2_to_say(jobs: InMemoryJobs) -> None:
    start(jobs, *(f"job-{number}" for number in range(101)))

    assert quotas_of(jobs, offered_with(11.0)) == {G_SPOT: QuotaUsage(11.0)}
    assert jobs.load_job.call_count == 0


def test_a_quota_with_room_for_as_many_jobs_as_the_stack_allows_costs_no_read(jobs: InMemoryJobs) -> None:
    for vcpus in (80.0, 79.0):
        quotas_of(jobs, offered_with(vcpus))

    assert jobs.load_slot_holders.call_count == 1


def test_a_plan_names_the_quota_to_ask_for() -> None:
    offerings = offered_with(0.0, DB2E81BA=2.0)

    (plan,) = plan_jobs([make_definition()], make_dependencies(offerings=offerings))

    assert plan.is_unsatisfiable
    assert '"Running On-Demand G and VT instances" (L-DB2E81BA)' in plan.problem


def test_a_job_whose_quota_others_use_up_waits_for_them(jobs: InMemoryJobs) -> None:
    start(jobs, "one", "two")
    jobs.create_job(make_job("late"), [make_timeline_entry()])

    job = launch_attempt("late", make_dependencies(jobs=jobs, offerings=offered_with(8.0, DB2E81BA=2.0)))

    assert job is not None
    assert (job.state, job.waiting and job.waiting.reason) == (JobState.WAITING, "capacity")
    assert job.waiting is not None
    assert "other jobs use 8 of the quota's 8" in job.waiting.detail


def test_on_demand_is_taken_where_only_the_spot_quota_is_used_up(jobs: InMemoryJobs) -> None:
    start(jobs, "one")
    jobs.create_job(make_job("late"), [make_timeline_entry()])

    job = launch_attempt("late", make_dependencies(jobs=jobs, offerings=offered_with(4.0)))

    assert job is not None
    assert job.current_attempt.placement.offering.purchase is PurchaseOption.ON_DEMAND


def test_only_what_the_job_may_take_is_asked_for(jobs: InMemoryJobs) -> None:
    offerings = FakeOfferings()
    deps = make_dependencies(jobs=jobs, offerings=offerings)
    definition = make_definition(purchase=PurchasePolicy.SPOT)
    jobs.create_job(make_job("late", definition=definition), [make_timeline_entry()])

    launch_attempt("late", deps)
    assert set(offerings.asked) == {PurchaseOption.SPOT}

    plan_jobs([definition, make_definition(name="other", purchase=PurchasePolicy.ON_DEMAND)], deps)
    assert set(offerings.asked) == {PurchaseOption.SPOT, PurchaseOption.ON_DEMAND}
