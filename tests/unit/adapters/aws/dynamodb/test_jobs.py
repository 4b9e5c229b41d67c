"""How the jobs table spends its calls, what it lets expire, and how it reads and replaces what is large."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.aws import make_client
from fakes.builders import (
    NOW,
    make_attempt,
    make_capacity_failure,
    make_definition,
    make_job,
    make_offering_key,
    make_running_job,
    make_selection,
    make_spot_pool,
    make_timeline_entry,
)
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.dynamodb.table import key, put
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger, TriggerSource
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from relaunch.ports import PermanentError, StaleWriteError


class TestCalls:
    def test_a_job_with_its_attempt_is_loaded_by_one_query(self, table):
        job = table.create()
        for number in (1, 2, 3):
            job = table.stores.jobs.save_job(
                Decision(replace(job, attempt=make_attempt(number)), (make_timeline_entry(),), make_selection(), NOW)
            )
        table.calls.clear()
        assert table.stores.jobs.load_job(job.job_id) == job
        assert table.calls == {"Query": 1}

    def test_a_job_is_created_by_one_transaction(self, table):
        table.calls.clear()
        table.stores.jobs.create_job(make_job(image=("trainer", "5e07")), [make_timeline_entry()])
        assert table.calls == {"TransactWriteItems": 1}

    def test_a_write_with_everything_in_it_is_one_transaction(self, table):
        job = make_running_job(version=1)
        table.create(job)
        table.stores.jobs.save_job(
            Decision(
                job,
                (make_timeline_entry(), make_timeline_entry("running")),
                selection=make_selection(),
                selected_at=NOW,
                take_slot_limits=(5, 20),
                link_instance=True,
            )
        )
        assert table.calls == {"TransactWriteItems": 1}

    def test_failures_of_every_known_type_the_runs_and_the_pools_are_loaded_by_one_query(self, table):
        table.stores.capacity.count_run(SpotRun(make_offering_key(), "a/1/1", Observed.START, NOW))
        offerings = {make_offering_key(name) for name in load_catalogue()}
        for offering in offerings:
            table.stores.capacity.remember(make_capacity_failure(offering=offering))
        table.stores.capacity.save_pool(make_spot_pool())
        table.calls.clear()
        memory, runs, pools = table.stores.capacity.load_capacity(NOW)
        assert (set(memory), len(runs), len(pools)) == (offerings, 1, 1)
        assert table.calls == {"Query": 1}

    def test_pools_sort_before_what_earlier_versions_read_of_the_capacity(self, table):
        table.stores.capacity.save_pool(make_spot_pool())
        (item,) = table.client.scan(TableName=table.name)["Items"]
        assert item["pk"]["S"] == "CAPACITY"
        assert item["sk"]["S"] < "RUNS#"

    def test_what_several_machines_saw_is_beside_what_earlier_versions_read_of_the_capacity(self, table):
        table.stores.capacity.save_pool(replace(make_spot_pool(), nodes=4))
        run = SpotRun(make_offering_key(), "a/1/1", Observed.END, NOW, 2.0, nodes=4)
        table.stores.capacity.count_run(run)
        pool, runs = sorted(table.client.scan(TableName=table.name)["Items"], key=lambda item: item["sk"]["S"])
        # They query from this key on, take what is between it and RUNS# for a pool, and all after RUNS$ for a failure.
        assert pool["sk"]["S"] < "POOL#"
        assert runs["sk"]["S"].split("#") == ["RUNS", "2026-03-14", "g5.xlarge", "*"]
        assert (runs["hours"], runs["format"]) == ({"N": "2.0"}, {"N": "1"})

    def test_who_needs_the_failures_only_reads_no_runs_and_no_pools(self, table):
        table.stores.capacity.save_pool(make_spot_pool())
        for day in range(3):
            table.stores.capacity.count_run(
                SpotRun(make_offering_key(), "a/1/1", Observed.START, NOW + timedelta(days=day))
            )
        table.stores.capacity.remember(make_capacity_failure())
        read: list[int] = []
        table.client.meta.events.register(
            "after-call.dynamodb.Query", lambda parsed, **_: read.append(parsed["ScannedCount"])
        )
        assert len(table.stores.capacity.load_capacity_memory(NOW)) == 1
        assert read == [1]

    def test_the_definitions_of_an_event_are_found_by_one_query(self, table):
        for name in ("resnet", "bert"):
            table.stores.definitions.save_definition(make_definition(name=name))
        table.calls.clear()
        assert len(table.stores.definitions.find_definitions(TriggerSource.GITHUB, "acme/vision")) == 2
        assert table.calls == {"Query": 1}


class TestExpiry:
    def test_everything_of_a_job_expires_once_it_is_over(self, table):
        job = table.create(make_job(image=("trainer", "5e07")))
        write = Decision(replace(job, attempt=make_attempt(1)), (make_timeline_entry(),), make_selection(), NOW)
        job = table.stores.jobs.save_job(write)
        running = replace(job, attempt=make_running_job().attempt)
        job = table.stores.jobs.save_job(Decision(running, take_slot_limits=(5, 5), link_instance=True))
        assert not any("expires_at" in item for item in table.items() if item["pk"]["S"].startswith("JOB"))
        over = replace(job, state=JobState.SUCCEEDED, wake_at=None, ended_at=NOW)
        table.stores.jobs.save_job(Decision(over, (make_timeline_entry("succeeded"),), release_slot=True))
        lasting = [item["pk"]["S"] for item in table.items() if "expires_at" not in item]
        assert set(lasting) <= {"SLOTS"}
        ends = {item["expires_at"]["N"] for item in table.items() if item["pk"]["S"].startswith("JOB")}
        assert ends == {str(int((NOW + timedelta(days=90)).timestamp()))}

    def test_a_long_story_expires_too(self, table):
        job = table.create()
        for number in range(2):
            entries = tuple(make_timeline_entry(f"{number} {line}") for line in range(60))
            job = table.stores.jobs.save_job(Decision(job, entries))
        over = replace(job, state=JobState.FAILED, wake_at=None, ended_at=NOW)
        table.calls.clear()
        table.stores.jobs.save_job(Decision(over, (make_timeline_entry("failed"),)))
        assert table.calls == {"Query": 1, "TransactWriteItems": 3}
        assert not [item for item in table.items() if "expires_at" not in item]

    def test_what_has_expired_of_the_capacity_memory_is_not_read_although_it_is_there(self, table):
        table.stores.capacity.remember(make_capacity_failure())
        assert len(table.items()) == 1
        assert table.stores.capacity.load_capacity_memory(NOW + timedelta(hours=1)) == {}

    def test_time_to_live_is_in_whole_seconds(self, table):
        table.stores.capacity.remember(make_capacity_failure(until=NOW + timedelta(seconds=1.9)))
        table.stores.events.record_event("s3:a", "s3", "no rule matches", [], NOW)
        expected = {int((NOW + timedelta(hours=2)).timestamp()) + 1, int((NOW + timedelta(days=8)).timestamp())}
        assert {int(item["expires_at"]["N"]) for item in table.items()} == expected


class TestDefinitions:
    def test_of_two_who_replace_a_definition_at_once_none_leaves_a_trigger_behind(self, table):
        table.stores.definitions.save_definition(make_definition(triggers=(S3Trigger("old"),)))
        other = DynamoDbStores(make_client("dynamodb"), table.name)
        faults = table.faults("TransactWriteItems")

        def another_is_quicker() -> None:
            if faults.sent == 1:
                other.definitions.save_definition(make_definition(triggers=(S3Trigger("theirs"),)))

        faults.on_send = another_is_quicker
        table.stores.definitions.save_definition(make_definition(triggers=(S3Trigger("ours"),)))
        find = table.stores.definitions.find_definitions
        assert [name for name in ("old", "theirs", "ours") if find(TriggerSource.S3, name)] == ["ours"]

    def test_who_loses_every_race_is_told(self, table):
        table.stores.definitions.save_definition(make_definition())
        other = DynamoDbStores(make_client("dynamodb"), table.name)
        table.faults("TransactWriteItems").on_send = lambda: other.definitions.save_definition(make_definition())
        with pytest.raises(StaleWriteError, match="resnet"):
            table.stores.definitions.save_definition(make_definition(max_failures=9))

    def test_more_origins_than_a_transaction_takes_are_refused_in_words(self, table):
        triggers = tuple(S3Trigger(f"bucket-{number}") for number in range(100))
        with pytest.raises(PermanentError, match="watches 100 origins, 99 can be"):
            table.stores.definitions.save_definition(make_definition(triggers=triggers))
        table.stores.definitions.save_definition(make_definition(triggers=triggers[:99]))
        assert table.stores.definitions.find_definitions(TriggerSource.S3, "bucket-98")

    def test_more_than_one_page_of_definitions_is_read(self, table):
        bulky = make_definition(triggers=(GithubTrigger("acme/vision", "push", paths=("x" * 300_000,)),))
        for number in range(5):
            table.stores.definitions.save_definition(replace(bulky, name=f"resnet-{number}"))
        table.calls.clear()
        assert len(table.stores.definitions.find_definitions(TriggerSource.GITHUB, "acme/vision")) == 5
        assert table.calls["Query"] > 1
        assert len(table.stores.definitions.list_definitions()) == 5


def test_more_than_one_page_of_jobs_is_listed_in_order(table):
    for number in range(5):
        job = make_job(f"resnet-{number}", accepted_at=NOW + timedelta(minutes=number), inputs={"x": "y" * 300_000})
        table.create(job)
    summaries, cursor = table.stores.jobs.list_jobs(5)
    assert [summary.job_id for summary in summaries] == [f"resnet-{number}" for number in (4, 3, 2, 1, 0)]
    assert cursor is None


def test_the_index_of_capacity_failures_keeps_offerings_without_a_zone_apart(table):
    table.stores.capacity.remember(make_capacity_failure(offering=make_offering_key()))
    table.stores.capacity.remember(make_capacity_failure(offering=make_offering_key(zone="us-east-1a")))
    assert {item["sk"]["S"] for item in table.items()} == {"g5.xlarge#*#spot", "g5.xlarge#us-east-1a#spot"}


def test_a_put_without_a_condition_asks_for_nothing_else():
    assert put(key("a", "b")) == {"Put": {"Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}


def test_what_an_earlier_version_remembers_of_a_capacity_provider_is_read_and_reopened(table):
    failure, store = make_capacity_failure(capacity_provider="g5-xlarge-spot"), table.stores.capacity
    store.remember(failure)
    (item,) = table.items()
    table.client.put_item(TableName=table.name, Item={**item, "sk": {"S": "g5.xlarge#*#spot"}})
    table.client.delete_item(TableName=table.name, Key={name: item[name] for name in ("pk", "sk")})
    assert list(store.load_capacity_memory(NOW).values()) == [failure]

    later = replace(failure, until=failure.until + timedelta(minutes=1))
    store.remember(later)
    assert list(store.load_capacity_memory(NOW).values()) == [later]

    store.reopen(later, NOW)
    assert list(store.load_capacity_memory(NOW).values()) == [failure]
    store.reopen(failure, NOW)
    assert store.load_capacity_memory(NOW) == {}
