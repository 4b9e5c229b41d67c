"""How machines are written: what is sent, what a repeated call does, and what a race for the last place does."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.aws import make_client, refusal, refuse
from fakes.builders import make_job
from fakes.jobs_table import ObservedTable
from fakes.stored_machines import change, make_claim, make_gone, make_machine
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineDecision, MachineTotals
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import MachineLimitError, MachineTakenError, PermanentError, StaleWriteError, TransientError

CANCELED = "TransactionCanceledException"
ONE = MachineTotals(1, 400_000)


@pytest.fixture
def patient(aws: None) -> ObservedTable:
    """A table whose client sends a call a second time; moto knows no tokens, so the second is carried out again."""
    return ObservedTable(attempts=2)


def save(table: ObservedTable, machine: Machine | None = None) -> Machine:
    saved = table.stores.machines.save_machine(change(machine or make_machine()))
    table.calls.clear()
    return saved


def items_under(table: ObservedTable, pk: str) -> list[dict[str, Any]]:
    return [item for item in table.items() if item["pk"]["S"] == pk]


class TestCalls:
    def test_a_machine_is_saved_by_one_transaction_and_loaded_by_one_read(self, table: ObservedTable) -> None:
        saved = table.stores.machines.save_machine(change(make_machine(instance_id="i-1"), machines=5))
        assert table.calls == {"TransactWriteItems": 1}
        table.calls.clear()
        assert table.stores.machines.load_machine("m-1") == saved
        assert table.calls == {"GetItem": 1}

    def test_a_machine_is_saved_with_a_job_by_one_transaction(self, table: ObservedTable) -> None:
        job = table.create()
        decision = Decision(job, take_slot_limits=(5, 5), machines=(change(make_machine(instance_id="i-1")),))
        table.stores.jobs.save_job(decision)
        assert table.calls == {"TransactWriteItems": 1}

    def test_the_counters_are_not_written_when_they_do_not_change(self, table: ObservedTable) -> None:
        machine = save(table)
        sent: list[Any] = []
        table.client.meta.events.register(
            "provide-client-params.dynamodb.TransactWriteItems", lambda params, **_: sent.append(params)
        )
        table.stores.machines.save_machine(MachineDecision(replace(machine, state=MachineState.READY)))
        ((action,),) = [params["TransactItems"] for params in sent]
        assert action["Put"]["Item"]["sk"] == {"S": "MACHINE"}

    def test_the_counters_are_one_item(self, table: ObservedTable) -> None:
        for number in range(3):
            save(table, make_machine(f"m-{number}", usd_per_hour=0.1))
        assert items_under(table, "MACHINES") == [
            {
                "pk": {"S": "MACHINES"},
                "sk": {"S": "TOTALS"},
                "machines": {"N": "3"},
                "micro_usd_per_hour": {"N": "300000"},
                "format": {"N": "1"},
            }
        ]

    def test_whoever_is_gone_expires_with_its_instance(self, table: ObservedTable) -> None:
        machine = save(table, make_machine(instance_id="i-1"))
        assert not [item for item in table.items() if "expires_at" in item]
        table.stores.machines.save_machine(change(make_gone(machine), machine))
        expiring = {item["pk"]["S"] for item in table.items() if "expires_at" in item}
        assert expiring == {"MACHINE#m-1", "EC2#i-1"}


class TestTimeOuts:
    def test_a_save_that_took_effect_before_it_timed_out_is_ours_and_counted_once(self, patient: ObservedTable) -> None:
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        saved = patient.stores.machines.save_machine(change(make_machine(), machines=1))
        assert faults.sent == 2
        assert patient.stores.machines.load_machine("m-1") == saved == make_machine(version=1)
        assert patient.stores.machines.load_totals() == ONE

    def test_a_job_whose_save_took_effect_before_it_timed_out_has_its_machine(self, patient: ObservedTable) -> None:
        job = patient.create()
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        decision = Decision(job, take_slot_limits=(1, 1), machines=(change(make_machine(), machines=1),))
        assert patient.stores.jobs.save_job(decision) == replace(job, version=2)
        assert faults.sent == 2
        assert patient.stores.machines.load_machine("m-1") == make_machine(version=1)
        assert patient.stores.machines.load_totals() == ONE

    def test_a_save_that_somebody_followed_before_it_was_repeated_is_stale(self, patient: ObservedTable) -> None:
        faults = patient.faults("TransactWriteItems")
        faults.after = 1
        other = DynamoDbStores(make_client("dynamodb"), patient.name)

        def somebody_goes_on() -> None:
            if faults.sent == 2:
                loaded = other.machines.load_machine("m-1")
                assert loaded is not None
                other.machines.save_machine(MachineDecision(replace(loaded, reason="theirs")))

        faults.on_send = somebody_goes_on
        with pytest.raises(StaleWriteError, match="machine m-1 is no longer at version 0"):
            patient.stores.machines.save_machine(change(make_machine()))
        assert patient.stores.machines.load_machine("m-1") == make_machine(reason="theirs", version=2)
        assert patient.stores.machines.load_totals() == ONE

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_repeat_after_a_save_without_an_answer_never_counts_twice(
        self, table: ObservedTable, moment: str
    ) -> None:
        setattr(table.faults("TransactWriteItems"), moment, 1)
        decision = change(make_machine(), machines=1)
        with pytest.raises(TransientError, match="saving machine m-1"):
            table.stores.machines.save_machine(decision)
        if moment == "before":
            assert table.stores.machines.load_totals() == MachineTotals()
            table.stores.machines.save_machine(decision)
        else:
            with pytest.raises(StaleWriteError):
                table.stores.machines.save_machine(decision)
        assert table.stores.machines.load_machine("m-1") == make_machine(version=1)
        assert table.stores.machines.load_totals() == ONE

    @pytest.mark.parametrize("operation", ["GetItem", "Query"])
    def test_reads_without_an_answer_are_transient(self, table: ObservedTable, operation: str) -> None:
        table.faults(operation).before = 1
        read = (
            table.stores.machines.load_totals
            if operation == "GetItem"
            else lambda: table.stores.machines.load_living(1)
        )
        with pytest.raises(TransientError, match="MACHINES"):
            read()


class TestRaces:
    def test_of_two_that_take_the_last_place_one_is_refused(self, table: ObservedTable) -> None:
        other = DynamoDbStores(make_client("dynamodb"), table.name)
        faults = table.faults("TransactWriteItems")

        def another_is_quicker() -> None:
            if faults.sent == 1:
                other.machines.save_machine(change(make_machine("theirs"), machines=1))

        faults.on_send = another_is_quicker
        with pytest.raises(MachineLimitError):
            table.stores.machines.save_machine(change(make_machine("ours"), machines=1))
        assert table.stores.machines.load_living(9) == ["theirs"]
        assert table.stores.machines.load_totals() == ONE

    def test_of_two_jobs_that_claim_the_last_room_one_is_told_so(self, table: ObservedTable) -> None:
        other = DynamoDbStores(make_client("dynamodb"), table.name)
        jobs = [table.create(make_job(name)) for name in ("ours", "theirs")]
        machine = save(table)
        claims = [
            Decision(job, machines=(change(replace(machine, claims=(make_claim(job.job_id, gpus=1),)), machine),))
            for job in jobs
        ]
        faults = table.faults("TransactWriteItems")

        def another_is_quicker() -> None:
            if faults.sent == 1:
                other.jobs.save_job(claims[1])

        faults.on_send = another_is_quicker
        with pytest.raises(MachineTakenError) as taken:
            table.stores.jobs.save_job(claims[0])
        assert taken.value.machine_id == "m-1"
        loaded = table.stores.machines.load_machine("m-1")
        assert loaded is not None
        assert [claim.job_id for claim in loaded.claims] == ["theirs"]
        assert table.stores.jobs.load_job("ours") == jobs[0]

    def test_a_conflict_about_the_counters_is_tried_again(self, table: ObservedTable) -> None:
        conflict = refusal(CANCELED, "None", "TransactionConflict")
        table.faults("TransactWriteItems").on_send = refuse(conflict, conflict)
        assert table.stores.machines.save_machine(change(make_machine())).version == 1
        assert len(table.pauses) == 2

    @pytest.mark.parametrize(
        ("reasons", "error"),
        [
            (("None", "None", "None", "ConditionalCheckFailed", "TransactionConflict"), MachineTakenError),
            (("None", "None", "None", "TransactionConflict", "ConditionalCheckFailed"), MachineLimitError),
        ],
    )
    def test_a_failed_condition_is_told_from_a_conflict_beside_it(
        self, table: ObservedTable, reasons: tuple[str, ...], error: type[Exception]
    ) -> None:
        job = table.create()
        table.faults("TransactWriteItems").on_send = refuse(refusal(CANCELED, *reasons))
        decision = Decision(job, take_slot_limits=(5, 5), machines=(change(make_machine(), machines=1),))
        with pytest.raises(error):
            table.stores.jobs.save_job(decision)

    @pytest.mark.parametrize(
        ("error", "refused"),
        [
            (TransientError, refusal(CANCELED, "None", "ThrottlingError")),
            (TransientError, refusal("ThrottlingException")),
            (PermanentError, refusal("AccessDeniedException")),
        ],
        ids=lambda each: getattr(each, "response", each),
    )
    def test_throttling_is_transient_and_what_will_be_refused_again_is_permanent(
        self, table: ObservedTable, error: type[Exception], refused: Any
    ) -> None:
        table.faults("TransactWriteItems").on_send = refuse(refused)
        with pytest.raises(error, match="saving machine m-1"):
            table.stores.machines.save_machine(change(make_machine()))
        assert table.stores.machines.load_machine("m-1") is None
