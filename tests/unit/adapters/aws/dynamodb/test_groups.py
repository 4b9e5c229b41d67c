"""How concurrency groups are stored: what expires when, what a lost answer changes, and what a recount does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_definition, make_job, make_timeline_entry
from fakes.jobs_table import ObservedTable
from relaunch.adapters.aws.dynamodb.recount import recount
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.jobs.groups import GroupChange, GroupPlace, GroupStanding
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.groups import slot_of
from relaunch.ports import TransientError

DEFINITION = make_definition(concurrency=Concurrency("gpu", cancel_in_progress=True), max_runtime=timedelta(days=2))
YEAR = timedelta(days=365)
LONGEST = timedelta(days=2)


@pytest.fixture
def patient(aws: None) -> ObservedTable:
    """A table whose client sends a call again."""
    return ObservedTable(attempts=2)


def member(job_id: str, after: str = "", seconds: float = 0.0) -> Job:
    at = NOW + timedelta(seconds=seconds)
    return make_job(job_id, definition=DEFINITION, group=GroupPlace("gpu", at, after), accepted_at=at)


def enter(table: ObservedTable, job: Job) -> Job:
    standing = GroupStanding(job.job_id, job.group.event_at, job.accepted_at, cancels=True)
    assert table.stores.jobs.create_job(job, [make_timeline_entry()], standing)
    return replace(job, version=1)


def launch(table: ObservedTable, job: Job) -> Job:
    held = replace(job, group=replace(job.group, is_holder=True), state=JobState.LAUNCHING, waiting=None)
    decision = Decision(replace(held, attempt=make_attempt()), group_change=GroupChange.TAKE)
    return table.stores.jobs.save_job(decision)


def group_item(table: ObservedTable) -> dict[str, dict[str, str]]:
    (item,) = (each for each in table.items() if each["pk"]["S"] == "GROUP")
    return item


def standing(table: ObservedTable) -> GroupStanding:
    return table.stores.jobs.load_group(slot_of(member("resnet-1")))


def test_a_job_enters_its_group_in_the_transaction_that_creates_it(table: ObservedTable) -> None:
    table.calls.clear()
    enter(table, member("resnet-1"))
    assert table.calls == {"TransactWriteItems": 1}


def test_a_group_is_kept_for_a_year_and_while_it_is_held(table: ObservedTable) -> None:
    job = enter(table, member("resnet-1"))
    assert group_item(table)["expires_at"] == {"N": str(int((NOW + LONGEST + YEAR).timestamp()))}
    job = launch(table, job)
    assert "expires_at" not in group_item(table)
    ended = replace(job, state=JobState.SUCCEEDED, wake_at=None, ended_at=NOW + LONGEST)
    table.stores.jobs.save_job(Decision(ended, group_change=GroupChange.RELEASE))
    assert group_item(table)["expires_at"] == {"N": str(int((NOW + 2 * LONGEST + YEAR).timestamp()))}
    assert "holder" not in group_item(table)


def test_an_answer_that_is_lost_changes_nothing(patient: ObservedTable) -> None:
    faults = patient.faults("TransactWriteItems")
    faults.after = 1
    job = enter(patient, member("resnet-1"))
    faults.after = 1
    launch(patient, job)
    assert faults.sent == 4
    assert standing(patient) == GroupStanding("resnet-1", NOW, NOW, cancels=True, holder="resnet-1")


def test_a_group_of_a_newer_release_is_left_alone(table: ObservedTable) -> None:
    enter(table, member("resnet-1"))
    table.client.put_item(TableName=table.name, Item=group_item(table) | {"format": {"N": "2"}})
    with pytest.raises(TransientError, match="a newer release wrote it"):
        standing(table)
    with pytest.raises(TransientError, match="a newer release wrote it"):
        enter(table, member("resnet-2", "resnet-1"))


def test_what_a_newer_release_added_to_a_group_is_kept(table: ObservedTable) -> None:
    job = enter(table, member("resnet-1"))
    table.client.put_item(TableName=table.name, Item=group_item(table) | {"later": {"S": "kept"}})
    launch(table, job)
    assert group_item(table)["later"] == {"S": "kept"}


class TestRecounting:
    def recounted(self, table: ObservedTable) -> GroupStanding:
        assert recount(JobsTable(table.client, table.name)) == []
        return standing(table)

    def test_what_open_jobs_say_of_their_groups_is_stored(self, table: ObservedTable) -> None:
        launch(table, enter(table, member("resnet-1")))
        enter(table, member("resnet-2", "resnet-1", seconds=5))
        before = standing(table)
        table.client.delete_item(TableName=table.name, Key={name: group_item(table)[name] for name in ("pk", "sk")})
        assert self.recounted(table) == before
        at = NOW + timedelta(seconds=5)
        assert before == GroupStanding("resnet-2", at, at, cancels=True, holder="resnet-1")

    def test_a_newer_job_that_was_not_restored_replaces_none(self, table: ObservedTable) -> None:
        enter(table, member("resnet-1"))
        item = group_item(table) | {"newest": {"S": "resnet-lost"}, "holder": {"S": "resnet-lost"}}
        table.client.put_item(TableName=table.name, Item=item)
        assert self.recounted(table) == GroupStanding("resnet-1", NOW, NOW, cancels=True)

    def test_a_group_without_open_jobs_is_held_by_none(self, table: ObservedTable) -> None:
        job = launch(table, enter(table, member("resnet-1")))
        ended = replace(job, state=JobState.SUCCEEDED, wake_at=None, ended_at=NOW)
        table.stores.jobs.save_job(Decision(ended))
        assert standing(table).holder == "resnet-1"
        assert self.recounted(table) == GroupStanding("resnet-1", NOW, NOW, cancels=True)
