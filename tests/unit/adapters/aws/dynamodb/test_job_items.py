"""Jobs become items and items the same jobs, within DynamoDB's limits."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.builders import (
    NOW,
    make_attempt,
    make_container,
    make_definition,
    make_job,
    make_offering,
    make_offering_key,
    make_placement,
    make_revision,
    make_running_job,
    make_selection,
    make_timeline_entry,
    task_id,
)
from fakes.stored_items import kinds, size_of
from fakes.strategies import any_of
from relaunch.adapters.aws.dynamodb import job_items, job_listing
from relaunch.adapters.aws.dynamodb.table import stamp
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuPlacement,
    GpuSharing,
    KubernetesWorkload,
    PodSecurity,
    PodVolume,
    SecretKey,
    TaintEffect,
    Toleration,
)
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt, HeldStop, IntentKind, Stop, StopIntent, StopKind
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.job import Job, TimelineEntry, due_at
from relaunch.core.jobs.state import CostBasis, JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering
from relaunch.ports import TransientError

# Building a strategy for a whole job takes hypothesis a moment; that says nothing about the code under test.
thorough = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@thorough
@given(st.data())
def test_every_job_comes_back_as_it_was(data: st.DataObject) -> None:
    job = data.draw(any_of(Job))
    if not job.state.is_final and job.wake_at is None:
        job = replace(job, wake_at=NOW)
    attempt = job_items.attempt_item(job, job.attempt) if job.attempt else None
    read = job_items.read_job(job_items.job_item(job, "a write"), attempt)
    assert read == job
    assert kinds(read) == kinds(job)


@thorough
@given(any_of(JobDefinition))
def test_every_definition_comes_back_as_it_was(definition: JobDefinition) -> None:
    job = make_job(definition=definition)
    read = job_items.read_job(job_items.job_item(job, "a write"), None).definition
    assert read == definition
    assert kinds(read) == kinds(definition)


@thorough
@given(any_of(TimelineEntry))
def test_every_timeline_entry_comes_back_as_it_was(entry: TimelineEntry) -> None:
    (item,) = job_items.timeline_items(make_job(), [entry])
    assert job_items.read_timeline_entry(item) == entry


@thorough
@given(any_of(Attempt), st.integers(0, 40))
def test_every_attempt_comes_back_as_it_was_compressed_or_not(attempt: Attempt, tries: int) -> None:
    long = replace(attempt, closed_placements=attempt.closed_placements[:1] * tries)
    item = job_items.attempt_item(make_job(), long)
    assert job_items.read_attempt(item) == long


def test_an_item_written_before_a_field_was_added_is_read_with_its_default() -> None:
    item = job_items.job_item(make_job(), "a write")
    body = json.loads(item["body"]["S"])
    del body["cancel_requested"], body["definition"]["max_failures"]
    item["body"] = {"S": json.dumps(body | {"a_field_of_the_future": 1})}
    assert job_items.read_job(item, None) == make_job()


def test_a_job_that_waited_for_its_checkpoints_before_refusals_were_stored_is_read() -> None:
    waiting = Waiting(WaitReason.CHECKPOINT, NOW, "AccessDenied", NOW)
    item = job_items.job_item(make_job(waiting=waiting, wake_at=NOW, version=1), "w-1")
    body = json.loads(item["body"]["S"])
    assert body.pop("refusals") == {}

    job = job_items.read_job(item | {"body": {"S": json.dumps(body)}}, None)

    assert (job.waiting, job.refusals) == (waiting, {})


def test_a_job_and_an_attempt_of_different_writes_are_a_torn_read() -> None:
    job = make_running_job(version=5)
    older, newer = (job_items.attempt_item(replace(job, version=version), make_attempt()) for version in (4, 6))
    for attempt in (older, newer, None):
        with pytest.raises(job_items.TornReadError):
            job_items.read_job(job_items.job_item(job, "a write"), attempt)


def test_a_definition_for_kubernetes_is_read_as_it_was_written() -> None:
    workload = KubernetesWorkload(
        "trainer:v1",
        vcpus=0.5,
        labels={"app": "train"},
        gpu_sharing=GpuSharing.CORE_MEM,
        gpu_placement=GpuPlacement.BINPACK,
        compute_class=ComputeClass.GPU_HPN,
    )
    job = make_job(definition=make_definition(target=Target.ACK, kubernetes=workload, task_definition=""))

    item = job_items.job_item(job, "a write")

    assert job_items.read_job(item, None) == job
    assert isinstance(job_items.read_job(item, None).definition.target, Target)


def test_what_a_definition_does_not_use_of_later_releases_is_not_stored() -> None:
    def stored(**fields: Any) -> set[str]:
        job = make_job(definition=make_definition(kubernetes=KubernetesWorkload("trainer", **fields)))
        item = job_items.job_item(job, "a write")
        assert job_items.read_job(item, None) == job
        return set(json.loads(item["body"]["S"])["definition"]["kubernetes"])

    used = {"service_account_token": True, "pod_security": PodSecurity.RESTRICTED, "run_as_user": 7, "queue": "gpus"}
    used |= {"shared_memory_mib": 8, "disk_mib": 9, "secrets": {"A": SecretKey("a", "b")}, "priority_class": "high"}
    used |= {"volumes": (PodVolume("a", "/a"),), "tolerations": (Toleration("a", effect=TaintEffect.NO_EXECUTE),)}
    used |= {"node_selector": {"a": "b"}, "image_pull_secrets": ("a",), "scheduler_name": "a", "annotations": {"a": ""}}
    used |= {"pod": {"spec": {"containers": [{"name": "main", "ports": [{"containerPort": 1}]}]}}}
    assert stored() & used.keys() == set()
    assert stored(**used) - stored() == used.keys()


def test_what_a_container_does_not_use_of_later_releases_is_not_stored() -> None:
    used = make_container(torchrun_variables=("PET_NPROC_PER_NODE",), has_shared_memory=True)
    job = make_job(revision=make_revision(containers=(make_container(name="log"), used)))
    item = job_items.job_item(job, "a write")
    log, main = json.loads(item["body"]["S"])["revision"]["containers"]

    assert job_items.read_job(item, None) == job
    assert main.keys() - log.keys() == {"torchrun_variables", "has_shared_memory"}


def test_a_definition_that_was_written_before_there_were_other_targets_is_for_ecs() -> None:
    item = job_items.job_item(make_job(), "a write")
    body = json.loads(item["body"]["S"])
    del body["definition"]["kubernetes"]
    item["body"]["S"] = json.dumps(body)

    assert job_items.read_job(item, None) == make_job()


def test_a_job_that_a_newer_release_wrote_in_words_unknown_here_cannot_be_read_for_now() -> None:
    item = job_items.job_item(make_job("resnet-1f2e"), "a write")
    item["body"]["S"] = item["body"]["S"].replace('"state":"WAITING"', '"state":"PONDERING"')

    with pytest.raises(TransientError, match=r"JOB#resnet-1f2e JOB cannot be read, a newer release .*: state: Input"):
        job_items.read_job(item, None)


def test_texts_of_times_sort_as_the_times_do() -> None:
    later = [NOW + timedelta(microseconds=1), NOW + timedelta(seconds=1), NOW.replace(year=2126)]
    times = [NOW, *later, NOW.replace(year=999)]
    texts = [stamp(at) for at in times]
    assert [at for _, at in sorted(zip(texts, times, strict=True))] == sorted(times)
    assert len({len(text) for text in texts}) == 1


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        stamp(NOW.replace(tzinfo=None))


class TestIndexes:
    def test_an_open_job_is_in_the_index_of_what_is_due(self) -> None:
        item = job_items.job_item(make_job(wake_at=NOW), "a write")
        assert (item["due"], item["wake_at"]) == ({"S": "OPEN"}, {"S": "2026-03-14T09:26:53.000000+00:00"})

    @pytest.mark.parametrize("state", [state for state in JobState if state.is_final])
    def test_a_job_that_is_over_is_in_the_listing_alone(self, state: JobState) -> None:
        item = job_items.job_item(make_job(state=state, wake_at=NOW, ended_at=NOW), "a write")
        assert not item.keys() & {"due", "wake_at", "slot"}
        assert item["listing"] == {"S": "JOBS"}

    def test_the_listing_needs_the_summary_alone(self) -> None:
        job = make_running_job()
        assert job_listing.read_summary(job_items.job_item(job, "a write")) == summarize_job(job)

    def test_due_at_is_none_exactly_for_jobs_that_are_over_and_done(self) -> None:
        assert due_at(make_job(wake_at=NOW)) == NOW
        assert due_at(make_job(state=JobState.FAILED, wake_at=NOW)) is None


def everything_written(job: Job) -> list[Mapping[str, Any]]:
    write = Decision(job, (make_timeline_entry(),), selection=make_selection(), selected_at=NOW)
    return [job_items.job_item(job, "a write"), *job_items.written_items(write, job)]


class TestExpiry:
    def test_everything_that_is_written_with_the_end_of_a_job_expires_ninety_days_later(self) -> None:
        job = make_running_job(state=JobState.SUCCEEDED, ended_at=NOW, wake_at=None)
        expected = {"N": str(int((NOW + timedelta(days=90)).timestamp()))}
        written = everything_written(job)
        assert len(written) == 4
        assert [item["expires_at"] for item in written] == [expected] * 4

    def test_nothing_of_an_open_job_expires(self) -> None:
        assert not any("expires_at" in item for item in everything_written(make_running_job()))

    def test_a_link_to_a_machine_outlives_the_longest_run_the_job_may_have(self) -> None:
        job = make_running_job(definition=make_definition(max_runtime=timedelta(days=30)))
        item = job_items.instance_item(job, job.current_attempt, "i-1")
        assert int(item["expires_at"]["N"]) > (NOW + timedelta(days=31)).timestamp()


class TestSizes:
    def test_an_attempt_with_long_reasons_and_many_tries_fits_into_one_read_unit(self) -> None:
        closed = tuple(
            make_placement(
                number,
                offering=make_offering_key(f"g{number}.48xlarge", "us-east-1a", PurchaseOption.ON_DEMAND),
                capacity_provider=f"training-g{number}-48xlarge-on-demand",
                requested_at=NOW + timedelta(minutes=number),
                task_id=task_id(number * 7919),
                resume_uri=f"s3://acme-checkpoints/resnet/resnet-1f2e3d4c/attempt-{number}/step-{number:07d}/",
                outcome=f"RESOURCE:GPU, RESOURCE:MEMORY after {number} minutes in PROVISIONING",
            )
            for number in range(1, 31)
        )
        prices = {f"us-east-1{letter}": 12.3456 for letter in "abcdef"}
        attempt = make_attempt(
            placement=make_placement(31, usd_per_hour_by_zone=prices, limit_usd_per_hour=55.04),
            closed_placements=closed,
            intent=StopIntent(IntentKind.INTERRUPTION, NOW, "EC2 announced an interruption"),
            stop=Stop(StopKind.HOST_LOST, NOW, "TerminationNotice", "Host EC2 (instance i-0123) terminated. " * 6),
        )
        item = job_items.attempt_item(make_job(), attempt)
        assert size_of(item) <= 4096
        assert job_items.read_attempt(item).closed_placements == closed

    def test_a_usual_attempt_is_kept_readable(self) -> None:
        job = make_running_job()
        item = job_items.attempt_item(job, job.current_attempt)
        assert json.loads(item["body"]["S"])["zone"] == "us-east-1a"
        assert size_of(item) < 1024

    def test_a_usual_attempt_whose_verdict_waits_costs_as_many_write_units_as_one_that_is_over(self) -> None:
        stop = Stop(StopKind.SUCCESS, NOW, "EssentialContainerExited", "Essential container in task exited", 0)
        job = make_running_job()
        held = HeldStop(stop, NOW, StopKind.HOST_LOST, StopKind.INTERRUPTION)
        item = job_items.attempt_item(job, replace(job.current_attempt, held_since=NOW, held=held))
        over = job_items.attempt_item(job, replace(job.current_attempt, held_since=NOW, stop=stop))
        assert 1024 < size_of(over) < size_of(item) < 2048

    def test_a_selection_among_all_offerings_of_a_large_region_stays_under_100_kb(self) -> None:
        rejected = tuple(
            RejectedOffering(
                make_offering(f"g{size}.{size}xlarge", purchase, zone=f"us-east-1{zone}", price_usd_per_hour=size / 7),
                "accelerator memory",
                Rejection(f"{size * 811} MiB per card is less than the {size * 1024} MiB that are asked for"),
            )
            for size in range(1, 201)
            for zone in "abcdef"
            for purchase in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
        )
        selection = make_selection(rejected=rejected)
        item = job_items.selection_item(make_running_job(), selection, NOW)
        assert size_of(item) < 100 * 1024
        assert len(job_items.read_selection(item).rows) == 2401


def test_a_body_is_json_that_other_tools_can_read() -> None:
    body = json.loads(job_items.job_item(make_running_job(), "a write")["body"]["S"])
    assert body["definition"]["triggers"][0]["repository"] == "acme/vision"
    assert body["attempt"] is None


def test_what_was_stored_before_prices_and_costs_had_a_basis_is_read():
    stored = make_running_job(cost_usd=0.25)
    item, attempt = job_items.job_item(stored, "w1"), job_items.attempt_item(stored, stored.current_attempt)
    for each, name in ((item, "body"), (item, "summary"), (attempt, "body")):
        content = json.loads(each[name]["S"])
        content.pop("cost_basis", None)
        for added in ("is_price_limit", "usd_per_hour_by_zone", "limit_usd_per_hour"):
            content.get("placement", {}).pop(added, None)
        each[name] = {"S": json.dumps(content)}

    job = job_items.read_job(item | {"attempt_number": {"N": "1"}}, attempt)

    assert job == stored
    assert job_listing.read_summary(item).cost_basis is CostBasis.PRICE
