"""What the jobs table does when DynamoDB fails, and how it spends its calls."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.aws import Faults, aws_in_process, create_jobs_table, make_client
from fakes.builders import (
    NOW,
    make_attempt,
    make_capacity_failure,
    make_definition,
    make_job,
    make_offering_key,
    make_running_job,
    make_selection,
    make_timeline_entry,
)
from relaunch.adapters.aws.dynamodb_jobs import DynamoDbJobs
from relaunch.adapters.aws.jobs_table import key, put
from relaunch.core.definition import GithubTrigger, S3Trigger, TriggerSource
from relaunch.core.job import Job, JobState
from relaunch.ports import JobWrite, PermanentError, SlotsFullError, StaleWriteError, TransientError


class Table:
    """A jobs table in moto, and a look inside. `attempts` is how often botocore sends a call."""

    def __init__(self, attempts: int) -> None:
        self.client = make_client("dynamodb", attempts=attempts)
        self.name = f"jobs-{uuid.uuid4()}"
        create_jobs_table(self.client, self.name)
        self.pauses: list[float] = []
        self.store = DynamoDbJobs(self.client, self.name, self.pauses.append)
        self.calls: Counter[str] = Counter()
        self.client.meta.events.register("before-call.dynamodb", self._count)

    def _count(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1

    def create(self, job: Job | None = None) -> Job:
        job = job or make_job()
        assert self.store.create_job(job, [make_timeline_entry()])
        self.calls.clear()
        return replace(job, version=1)

    def faults(self, operation: str) -> Faults:
        return Faults(self.client, "dynamodb", operation)

    def items(self) -> list[dict[str, Any]]:
        return list(self.client.scan(TableName=self.name)["Items"])


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    with aws_in_process():
        yield


@pytest.fixture
def table(aws: None) -> Table:
    """A table whose client gives up at once."""
    return Table(attempts=1)


@pytest.fixture
def patient(aws: None) -> Table:
    """A table whose client sends a call a second time; moto knows no tokens, so the second is carried out again."""
    return Table(attempts=2)


def refusal(code: str, *reasons: str) -> ClientError:
    answer: dict[str, Any] = {"Error": {"Code": code, "Message": "so it is"}}
    if reasons:
        answer["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    return ClientError(answer, "TransactWriteItems")  # type: ignore[arg-type]


def refuse(*refusals: ClientError) -> Any:
    left = list(refusals)

    def on_send() -> None:
        if left:
            raise left.pop(0)

    return on_send


class TestCalls:
    def test_a_job_with_its_attempt_is_loaded_by_one_query(self, table: Table) -> None:
        job = table.create()
        for number in (1, 2, 3):
            job = table.store.save_job(
                JobWrite(replace(job, attempt=make_attempt(number)), (make_timeline_entry(),), make_selection(), NOW)
            )
        table.calls.clear()
        assert table.store.load_job(job.job_id) == job
        assert table.calls == {"Query": 1}

    def test_a_job_is_created_by_one_transaction(self, table: Table) -> None:
        table.calls.clear()
        table.store.create_job(make_job(image=("trainer", "5e07")), [make_timeline_entry()])
        assert table.calls == {"TransactWriteItems": 1}

    def test_a_write_with_everything_in_it_is_one_transaction(self, table: Table) -> None:
        job = make_running_job(version=1)
        table.create(job)
        table.store.save_job(
            JobWrite(
                job,
                (make_timeline_entry(), make_timeline_entry("running")),
                selection=make_selection(),
                selected_at=NOW,
                take_slot_limits=(5, 20),
                link_instance=True,
            )
        )
        assert table.calls == {"TransactWriteItems": 1}

    def test_the_definitions_of_an_event_are_found_by_one_query(self, table: Table) -> None:
        for name in ("resnet", "bert"):
            table.store.save_definition(make_definition(name=name))
        table.calls.clear()
        assert len(table.store.find_definitions(TriggerSource.GITHUB, "acme/vision")) == 2
        assert table.calls == {"Query": 1}


class TestTimeOuts:
    def test_a_save_that_took_effect_before_it_timed_out_is_not_taken_for_anothers(self, patient: Table) -> None:
        job = patient.create()
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        saved = patient.store.save_job(
            JobWrite(replace(job, reason="ours"), (make_timeline_entry("ours"),), take_slot_limits=(1, 1))
        )
        assert faults.sent == 2
        assert patient.store.load_job(job.job_id) == saved == replace(job, reason="ours", version=2)
        history = patient.store.load_history(job.job_id)
        assert history is not None
        assert [entry.event for entry in history.timeline] == ["accepted", "ours"]

    def test_a_creation_that_took_effect_before_it_timed_out_is_ours(self, patient: Table) -> None:
        patient.faults("TransactWriteItems").after = 1
        assert patient.store.create_job(make_job(), [make_timeline_entry()]) is True
        assert patient.store.load_job(make_job().job_id) == make_job(version=1)

    def test_a_save_that_somebody_followed_before_it_was_repeated_is_stale(self, patient: Table) -> None:
        job = patient.create()
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        other = DynamoDbJobs(make_client("dynamodb"), patient.name)

        def somebody_goes_on() -> None:
            if faults.sent == 2:
                loaded = other.load_job(job.job_id)
                assert loaded is not None
                other.save_job(JobWrite(replace(loaded, reason="theirs")))

        faults.on_send = somebody_goes_on
        with pytest.raises(StaleWriteError):
            patient.store.save_job(JobWrite(replace(job, reason="ours")))
        assert patient.store.load_job(job.job_id) == replace(job, reason="theirs", version=3)

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_save_without_an_answer_is_transient_and_a_repeat_from_the_old_version_never_writes_twice(
        self, table: Table, moment: str
    ) -> None:
        job = table.create()
        setattr(table.faults("TransactWriteItems"), moment, 1)
        write = JobWrite(replace(job, reason="ours"), (make_timeline_entry("ours"),))
        with pytest.raises(TransientError, match=f"saving job {job.job_id}"):
            table.store.save_job(write)
        if moment == "before":
            assert table.store.load_job(job.job_id) == job
            table.store.save_job(write)
        else:
            with pytest.raises(StaleWriteError):
                table.store.save_job(write)
        history = table.store.load_history(job.job_id)
        assert history is not None
        assert history.job == replace(job, reason="ours", version=2)
        assert [entry.event for entry in history.timeline] == ["accepted", "ours"]

    def test_a_repeated_send_carries_the_same_token(self, patient: Table) -> None:
        tokens: list[str] = []

        def remember(params: dict[str, Any], **_: Any) -> None:
            tokens.append(params["ClientRequestToken"])

        patient.client.meta.events.register("provide-client-params.dynamodb.TransactWriteItems", remember)
        faults = patient.faults("TransactWriteItems")
        faults.on_send = refuse(*[refusal("TransactionCanceledException", "TransactionConflict", "None")] * 2)
        patient.store.create_job(make_job(), [])
        patient.store.create_job(make_job("resnet-2"), [])
        assert len(tokens) == 4
        assert len(set(tokens)) == 2
        assert all(len(token) <= 36 for token in tokens)

    @pytest.mark.parametrize("operation", ["Query", "GetItem", "PutItem"])
    def test_reads_and_small_writes_without_an_answer_are_transient(self, table: Table, operation: str) -> None:
        table.faults(operation).before = 1
        calls: dict[str, Callable[[], object]] = {
            "Query": lambda: table.store.load_job("resnet-1"),
            "GetItem": lambda: table.store.load_definition("resnet"),
            "PutItem": lambda: table.store.remember(make_capacity_failure()),
        }
        with pytest.raises(TransientError, match=r"CAPACITY|DEFINITION|JOB#resnet-1"):
            calls[operation]()


class TestRefusals:
    def test_a_conflict_with_another_transaction_is_tried_again_after_a_growing_pause(self, table: Table) -> None:
        job = table.create()
        conflict = refusal("TransactionCanceledException", "None", "TransactionConflict")
        table.faults("TransactWriteItems").on_send = refuse(
            conflict, conflict, refusal("TransactionInProgressException")
        )
        assert table.store.save_job(JobWrite(job)).version == 2
        assert len(table.pauses) == 3
        assert all(0 <= pause <= 0.02 * 2**tried for tried, pause in enumerate(table.pauses))

    def test_conflicts_without_end_are_transient(self, table: Table) -> None:
        job = table.create()
        conflict = refusal("TransactionCanceledException", "TransactionConflict")
        table.faults("TransactWriteItems").on_send = refuse(*[conflict] * 6)
        with pytest.raises(TransientError, match="in conflict with other transactions 6 times") as error:
            table.store.save_job(JobWrite(job))
        assert not isinstance(error.value, StaleWriteError)
        assert table.store.load_job(job.job_id) == job

    @pytest.mark.parametrize(
        "refused",
        [
            refusal("TransactionCanceledException", "None", "ThrottlingError"),
            refusal("TransactionCanceledException", "ProvisionedThroughputExceeded", "TransactionConflict"),
            refusal("ThrottlingException"),
            refusal("ProvisionedThroughputExceededException"),
            refusal("RequestLimitExceeded"),
            refusal("InternalServerError"),
        ],
        ids=lambda refused: str(refused.response),
    )
    def test_throttling_and_faults_of_the_service_are_transient(self, table: Table, refused: ClientError) -> None:
        job = table.create()
        table.faults("TransactWriteItems").on_send = refuse(refused)
        with pytest.raises(TransientError, match=f"saving job {job.job_id}"):
            table.store.save_job(JobWrite(job))
        assert table.store.load_job(job.job_id) == job

    @pytest.mark.parametrize(
        "refused",
        [
            refusal("AccessDeniedException"),
            refusal("ValidationException"),
            refusal("ResourceNotFoundException"),
            refusal("TransactionCanceledException", "None", "ValidationError"),
        ],
        ids=lambda refused: str(refused.response),
    )
    def test_what_will_be_refused_again_is_permanent(self, table: Table, refused: ClientError) -> None:
        job = table.create()
        table.faults("TransactWriteItems").on_send = refuse(refused)
        with pytest.raises(PermanentError, match=f"saving job {job.job_id}"):
            table.store.save_job(JobWrite(job))

    def test_a_full_cap_is_told_from_a_conflict_beside_it(self, table: Table) -> None:
        job = table.create()
        reasons = ("None", "TransactionConflict", "ConditionalCheckFailed", "None")
        table.faults("TransactWriteItems").on_send = refuse(refusal("TransactionCanceledException", *reasons))
        with pytest.raises(SlotsFullError) as full:
            table.store.save_job(JobWrite(job, take_slot_limits=(5, 20)))
        assert (full.value.cap, full.value.limit) == ("stack", 20)


class TestTornReads:
    def tear(self, table: Table, job: Job) -> dict[str, Any]:
        """Leave the table as a Query may see it in the middle of somebody's transaction; return the JOB item after."""
        before = table.store._table.get(f"JOB#{job.job_id}", "JOB")
        table.store.save_job(JobWrite(replace(job, attempt=make_attempt(2))))
        after = table.store._table.get(f"JOB#{job.job_id}", "JOB")
        assert before
        assert after
        table.client.put_item(TableName=table.name, Item=before)
        return after

    def test_a_job_read_in_the_middle_of_a_write_is_read_again(self, table: Table) -> None:
        job = table.create(make_running_job())
        after = self.tear(table, job)
        faults = table.faults("Query")

        def finish_the_write() -> None:
            if faults.sent == 2:
                table.client.put_item(TableName=table.name, Item=after)

        faults.on_send = finish_the_write
        loaded = table.store.load_job(job.job_id)
        assert loaded == replace(job, attempt=make_attempt(2), version=2)
        assert faults.sent == 2

    def test_a_job_that_is_written_each_time_it_is_read_is_transient(self, table: Table) -> None:
        job = table.create(make_running_job())
        self.tear(table, job)
        with pytest.raises(TransientError, match="each time"):
            table.store.load_job(job.job_id)
        with pytest.raises(TransientError, match="each time"):
            table.store.load_history(job.job_id)


class TestExpiry:
    def test_everything_of_a_job_expires_once_it_is_over(self, table: Table) -> None:
        job = table.create(make_job(image=("trainer", "5e07")))
        write = JobWrite(replace(job, attempt=make_attempt(1)), (make_timeline_entry(),), make_selection(), NOW)
        job = table.store.save_job(write)
        running = replace(job, attempt=make_running_job().attempt)
        job = table.store.save_job(JobWrite(running, take_slot_limits=(5, 5), link_instance=True))
        assert {
            item["sk"]["S"] for item in table.items() if item["pk"]["S"].startswith("JOB") and "expires_at" in item
        } == set()
        over = replace(job, state=JobState.SUCCEEDED, wake_at=None, ended_at=NOW)
        table.store.save_job(JobWrite(over, (make_timeline_entry("succeeded"),), release_slot=True))
        lasting = [item["pk"]["S"] for item in table.items() if "expires_at" not in item]
        assert set(lasting) <= {"SLOTS"}
        ends = {item["expires_at"]["N"] for item in table.items() if item["pk"]["S"].startswith("JOB")}
        assert ends == {str(int((NOW + timedelta(days=90)).timestamp()))}

    def test_a_long_story_expires_too(self, table: Table) -> None:
        job = table.create()
        for number in range(3):
            entries = tuple(make_timeline_entry(f"{number} {line}") for line in range(70))
            job = table.store.save_job(JobWrite(job, entries))
        over = replace(job, state=JobState.FAILED, wake_at=None, ended_at=NOW)
        table.calls.clear()
        table.store.save_job(JobWrite(over, (make_timeline_entry("failed"),)))
        assert table.calls == {"Query": 1, "TransactWriteItems": 4}
        assert not [item for item in table.items() if "expires_at" not in item]

    def test_what_has_expired_of_the_capacity_memory_is_not_read_although_it_is_there(self, table: Table) -> None:
        table.store.remember(make_capacity_failure())
        assert len(table.items()) == 1
        assert table.store.load_capacity_memory(NOW + timedelta(hours=1)) == {}

    def test_time_to_live_is_in_whole_seconds(self, table: Table) -> None:
        table.store.remember(make_capacity_failure(until=NOW + timedelta(seconds=1.9)))
        table.store.record_event("s3:a", "s3", "no rule matches", [], NOW)
        expected = {int(NOW.timestamp()) + 1, int((NOW + timedelta(days=8)).timestamp())}
        assert {int(item["expires_at"]["N"]) for item in table.items()} == expected


class TestDefinitions:
    def test_of_two_who_replace_a_definition_at_once_none_leaves_a_trigger_behind(self, table: Table) -> None:
        table.store.save_definition(make_definition(triggers=(S3Trigger("old"),)))
        other = DynamoDbJobs(make_client("dynamodb"), table.name)
        faults = table.faults("TransactWriteItems")

        def another_is_quicker() -> None:
            if faults.sent == 1:
                other.save_definition(make_definition(triggers=(S3Trigger("theirs"),)))

        faults.on_send = another_is_quicker
        table.store.save_definition(make_definition(triggers=(S3Trigger("ours"),)))
        watched = {name: table.store.find_definitions(TriggerSource.S3, name) for name in ("old", "theirs", "ours")}
        assert [name for name, found in watched.items() if found] == ["ours"]

    def test_who_loses_every_race_is_told(self, table: Table) -> None:
        table.store.save_definition(make_definition())
        other = DynamoDbJobs(make_client("dynamodb"), table.name)
        table.faults("TransactWriteItems").on_send = lambda: other.save_definition(make_definition())
        with pytest.raises(StaleWriteError, match="resnet"):
            table.store.save_definition(make_definition(max_failures=9))

    def test_more_origins_than_a_transaction_takes_are_refused_in_words(self, table: Table) -> None:
        triggers = tuple(S3Trigger(f"bucket-{number}") for number in range(100))
        with pytest.raises(PermanentError, match="watches 100 origins, 99 can be"):
            table.store.save_definition(make_definition(triggers=triggers))
        table.store.save_definition(make_definition(triggers=triggers[:99]))
        assert table.store.find_definitions(TriggerSource.S3, "bucket-98")

    def test_more_than_one_page_of_definitions_is_read(self, table: Table) -> None:
        bulky = make_definition(triggers=(GithubTrigger("acme/vision", "push", paths=("x" * 300_000,)),))
        for number in range(5):
            table.store.save_definition(replace(bulky, name=f"resnet-{number}"))
        table.calls.clear()
        assert len(table.store.find_definitions(TriggerSource.GITHUB, "acme/vision")) == 5
        assert table.calls["Query"] > 1
        assert len(table.store.list_definitions()) == 5


def test_more_than_one_page_of_jobs_is_listed_in_order(table: Table) -> None:
    for number in range(5):
        job = make_job(f"resnet-{number}", accepted_at=NOW + timedelta(minutes=number), inputs={"x": "y" * 300_000})
        table.create(job)
    summaries, cursor = table.store.list_jobs(5)
    assert [summary.job_id for summary in summaries] == [f"resnet-{number}" for number in (4, 3, 2, 1, 0)]
    assert cursor is None


def test_the_index_of_capacity_failures_keeps_offerings_without_a_zone_apart(table: Table) -> None:
    table.store.remember(make_capacity_failure(offering=make_offering_key()))
    table.store.remember(make_capacity_failure(offering=make_offering_key(zone="us-east-1a")))
    assert {item["sk"]["S"] for item in table.items()} == {"g5.xlarge#*#spot", "g5.xlarge#us-east-1a#spot"}


def test_a_put_without_a_condition_asks_for_nothing_else() -> None:
    assert put(key("a", "b")) == {"Put": {"Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}
