"""What the jobs table does when DynamoDB does not answer, refuses, or is read in the middle of a write."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes.aws import make_client, refusal, refuse
from fakes.builders import NOW, make_attempt, make_capacity_failure, make_job, make_running_job, make_timeline_entry
from fakes.jobs_table import ObservedTable
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import PermanentError, SlotsFullError, StaleWriteError, TransientError

CANCELED = "TransactionCanceledException"


@pytest.fixture
def patient(aws: None) -> ObservedTable:
    """A table whose client sends a call a second time; moto knows no tokens, so the second is carried out again."""
    return ObservedTable(attempts=2)


class TestTimeOuts:
    def test_a_save_that_took_effect_before_it_timed_out_is_not_taken_for_anothers(self, patient):
        job = patient.create()
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        saved = patient.stores.jobs.save_job(
            Decision(replace(job, reason="ours"), (make_timeline_entry("ours"),), take_slot_limits=(1, 1))
        )
        assert faults.sent == 2
        assert patient.stores.jobs.load_job(job.job_id) == saved == replace(job, reason="ours", version=2)
        history = patient.stores.jobs.load_history(job.job_id)
        assert history is not None
        assert [entry.event for entry in history.timeline] == ["accepted", "ours"]

    def test_a_creation_that_took_effect_before_it_timed_out_is_ours(self, patient):
        patient.faults("TransactWriteItems").after = 1
        assert patient.stores.jobs.create_job(make_job(), [make_timeline_entry()]) is True
        assert patient.stores.jobs.load_job(make_job().job_id) == make_job(version=1)

    def test_a_save_that_somebody_followed_before_it_was_repeated_is_stale(self, patient):
        job = patient.create()
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        other = DynamoDbStores(make_client("dynamodb"), patient.name)

        def somebody_goes_on() -> None:
            if faults.sent == 2:
                loaded = other.jobs.load_job(job.job_id)
                assert loaded is not None
                other.jobs.save_job(Decision(replace(loaded, reason="theirs")))

        faults.on_send = somebody_goes_on
        with pytest.raises(StaleWriteError):
            patient.stores.jobs.save_job(Decision(replace(job, reason="ours")))
        assert patient.stores.jobs.load_job(job.job_id) == replace(job, reason="theirs", version=3)

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_save_without_an_answer_is_transient_and_a_repeat_from_the_old_version_never_writes_twice(
        self, table, moment
    ):
        job = table.create()
        setattr(table.faults("TransactWriteItems"), moment, 1)
        write = Decision(replace(job, reason="ours"), (make_timeline_entry("ours"),))
        with pytest.raises(TransientError, match=f"saving job {job.job_id}"):
            table.stores.jobs.save_job(write)
        if moment == "before":
            assert table.stores.jobs.load_job(job.job_id) == job
            table.stores.jobs.save_job(write)
        else:
            with pytest.raises(StaleWriteError):
                table.stores.jobs.save_job(write)
        history = table.stores.jobs.load_history(job.job_id)
        assert history is not None
        assert history.job == replace(job, reason="ours", version=2)
        assert [entry.event for entry in history.timeline] == ["accepted", "ours"]

    def test_a_repeated_send_carries_the_same_token(self, patient):
        tokens: list[str] = []

        def remember(params: dict[str, Any], **_: Any) -> None:
            tokens.append(params["ClientRequestToken"])

        patient.client.meta.events.register("provide-client-params.dynamodb.TransactWriteItems", remember)
        faults = patient.faults("TransactWriteItems")
        faults.on_send = refuse(*[refusal(CANCELED, "TransactionConflict", "None")] * 2)
        patient.stores.jobs.create_job(make_job(), [])
        patient.stores.jobs.create_job(make_job("resnet-2"), [])
        assert len(tokens) == 4
        assert len(set(tokens)) == 2
        assert all(len(token) <= 36 for token in tokens)

    @pytest.mark.parametrize("operation", ["Query", "GetItem", "PutItem"])
    def test_reads_and_small_writes_without_an_answer_are_transient(self, table, operation):
        table.faults(operation).before = 1
        calls: dict[str, Callable[[], object]] = {
            "Query": lambda: table.stores.jobs.load_job("resnet-1"),
            "GetItem": lambda: table.stores.definitions.load_definition("resnet"),
            "PutItem": lambda: table.stores.capacity.remember(make_capacity_failure()),
        }
        with pytest.raises(TransientError, match=r"CAPACITY|DEFINITION|JOB#resnet-1"):
            calls[operation]()


class TestRefusals:
    def test_a_conflict_with_another_transaction_is_tried_again_after_a_growing_pause(self, table):
        job = table.create()
        conflict = refusal(CANCELED, "None", "TransactionConflict")
        table.faults("TransactWriteItems").on_send = refuse(
            conflict, conflict, refusal("TransactionInProgressException")
        )
        assert table.stores.jobs.save_job(Decision(job)).version == 2
        assert len(table.pauses) == 3
        assert all(0 <= pause <= 0.02 * 2**tried for tried, pause in enumerate(table.pauses))

    def test_conflicts_without_end_are_transient(self, table):
        job = table.create()
        conflict = refusal(CANCELED, "TransactionConflict")
        table.faults("TransactWriteItems").on_send = refuse(*[conflict] * 6)
        with pytest.raises(TransientError, match="in conflict with other transactions 6 times") as error:
            table.stores.jobs.save_job(Decision(job))
        assert not isinstance(error.value, StaleWriteError)
        assert table.stores.jobs.load_job(job.job_id) == job

    @pytest.mark.parametrize(
        ("error", "refused"),
        [
            (TransientError, refusal(CANCELED, "None", "ThrottlingError")),
            (TransientError, refusal(CANCELED, "ProvisionedThroughputExceeded", "TransactionConflict")),
            (TransientError, refusal("ThrottlingException")),
            (TransientError, refusal("ProvisionedThroughputExceededException")),
            (TransientError, refusal("RequestLimitExceeded")),
            (TransientError, refusal("InternalServerError")),
            (PermanentError, refusal("AccessDeniedException")),
            (PermanentError, refusal("ValidationException")),
            (PermanentError, refusal("ResourceNotFoundException")),
            (PermanentError, refusal(CANCELED, "None", "ValidationError")),
        ],
        ids=lambda each: getattr(each, "response", each),
    )
    def test_throttling_and_faults_are_transient_and_what_will_be_refused_again_is_permanent(
        self, table, error, refused
    ):
        job = table.create()
        table.faults("TransactWriteItems").on_send = refuse(refused)
        with pytest.raises(error, match=f"saving job {job.job_id}"):
            table.stores.jobs.save_job(Decision(job))
        assert table.stores.jobs.load_job(job.job_id) == job

    def test_a_full_cap_is_told_from_a_conflict_beside_it(self, table):
        job = table.create()
        reasons = ("None", "TransactionConflict", "ConditionalCheckFailed", "None")
        table.faults("TransactWriteItems").on_send = refuse(refusal(CANCELED, *reasons))
        with pytest.raises(SlotsFullError) as full:
            table.stores.jobs.save_job(Decision(job, take_slot_limits=(5, 20)))
        assert (full.value.cap, full.value.limit) == ("stack", 20)


class TestTornReads:
    def tear(self, table: ObservedTable, job: Job) -> dict[str, Any]:
        """Leave the table as a Query may see it in the middle of somebody's transaction; return the JOB item after."""
        before = table.stores.jobs._table.get(f"JOB#{job.job_id}", "JOB")
        table.stores.jobs.save_job(Decision(replace(job, attempt=make_attempt(2))))
        after = table.stores.jobs._table.get(f"JOB#{job.job_id}", "JOB")
        assert before
        assert after
        table.client.put_item(TableName=table.name, Item=before)
        return after

    def test_a_job_read_in_the_middle_of_a_write_is_read_again(self, table):
        job = table.create(make_running_job())
        after = self.tear(table, job)
        faults = table.faults("Query")

        def finish_the_write() -> None:
            if faults.sent == 2:
                table.client.put_item(TableName=table.name, Item=after)

        faults.on_send = finish_the_write
        loaded = table.stores.jobs.load_job(job.job_id)
        assert loaded == replace(job, attempt=make_attempt(2), version=2)
        assert faults.sent == 2

    def test_a_job_that_is_written_each_time_it_is_read_is_transient(self, table):
        job = table.create(make_running_job())
        self.tear(table, job)
        with pytest.raises(TransientError, match="each time"):
            table.stores.jobs.load_job(job.job_id)
        with pytest.raises(TransientError, match="each time"):
            table.stores.jobs.load_history(job.job_id)


class TestExpiry:
    """DynamoDB deletes each expired item by itself, in no order, within days."""

    def end(self, table: ObservedTable) -> str:
        """Return the id of a job that is over, whose items have expired."""
        job = table.create(make_running_job())
        table.stores.jobs.save_job(Decision(replace(job, state=JobState.SUCCEEDED, ended_at=NOW)))
        assert all("expires_at" in item for item in table.items() if item["pk"]["S"] == f"JOB#{job.job_id}")
        return job.job_id

    @pytest.mark.parametrize("kept", ["ATTEMPT#", "TIMELINE#"])
    def test_a_job_of_which_only_other_items_are_left_is_gone(self, table, kept):
        job_id = self.end(table)
        for item in table.items():
            if item["pk"]["S"] == f"JOB#{job_id}" and not item["sk"]["S"].startswith(kept):
                table.client.delete_item(TableName=table.name, Key={name: item[name] for name in ("pk", "sk")})

        assert table.stores.jobs.load_job(job_id) is None
        assert table.stores.jobs.load_history(job_id) is None

    def test_a_job_that_has_lost_its_attempt_is_gone(self, table):
        job_id = self.end(table)
        (attempt,) = [item for item in table.items() if item["sk"]["S"].startswith("ATTEMPT#")]
        table.client.delete_item(TableName=table.name, Key={name: attempt[name] for name in ("pk", "sk")})

        assert table.stores.jobs.load_job(job_id) is None
        assert table.stores.jobs.load_history(job_id) is None
