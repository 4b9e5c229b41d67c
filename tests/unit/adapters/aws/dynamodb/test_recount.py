"""After a restore the counters are what lives, whatever part of the last transaction was restored."""

from dataclasses import replace

import pytest

from fakes.aws import make_client
from fakes.builders import NOW, make_job, make_running_job
from fakes.jobs_table import ObservedTable
from fakes.stored_machines import make_gone, make_machine, save
from relaunch.adapters.aws.dynamodb.recount import main, recount
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.core.machines.decision import MachineTotals, micro_usd


@pytest.fixture
def filled(table: ObservedTable) -> ObservedTable:
    """A table with two jobs that have a slot, one that has none, and one machine of two that is not gone."""
    for job in (make_running_job("resnet-1"), make_running_job("resnet-2"), make_job("resnet-3", wake_at=NOW)):
        table.create(job)
    machines = table.stores.machines
    save(machines, make_machine("m-1"))
    gone = save(machines, make_machine("m-2"))
    save(machines, make_gone(gone), gone)
    return table


def put(table: ObservedTable, pk: str, sk: str, **counts: int) -> None:
    """Let a counter be something else."""
    item = {"pk": {"S": pk}, "sk": {"S": sk}, **{name: {"N": str(count)} for name, count in counts.items()}}
    table.client.put_item(TableName=table.name, Item=item)


def held(table: ObservedTable) -> dict[str, str]:
    """Return the counters of slots."""
    return {item["sk"]["S"]: item["held"]["N"] for item in table.items() if item["pk"]["S"] == "SLOTS"}


def test_counters_are_counted_from_what_they_count(filled: ObservedTable) -> None:
    put(filled, "SLOTS", "resnet", held=9)
    put(filled, "SLOTS", "bert", held=3)
    put(filled, "MACHINES", "TOTALS", machines=7, micro_usd_per_hour=-5)

    assert recount(JobsTable(filled.client, filled.name)) == []

    assert held(filled) == {"resnet": "2", "*": "2", "bert": "0"}
    assert filled.stores.machines.load_totals() == MachineTotals(1, micro_usd(0.4))


def test_jobs_that_were_restored_in_part_are_named(
    filled: ObservedTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (attempt,) = (each for each in filled.items() if each["pk"]["S"] == "JOB#resnet-1" and "ATTEMPT" in each["sk"]["S"])
    filled.client.put_item(TableName=filled.name, Item=attempt | {"version": {"N": "7"}})
    monkeypatch.setattr("sys.argv", ["recount", filled.name])

    with pytest.raises(SystemExit, match="restored in part"):
        main()

    assert capsys.readouterr().err.startswith("resnet-1: job resnet-1 was written by others")
    assert held(filled) == {"resnet": "1", "*": "1"}


def test_a_table_that_is_restored_under_its_own_name_is_as_it_was(filled: ObservedTable) -> None:
    client = filled.client
    name = filled.name
    before = sorted(filled.items(), key=str)
    aside = f"{name}-restored"

    client.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    client.restore_table_to_point_in_time(SourceTableName=name, TargetTableName=aside, UseLatestRestorableTime=True)
    backup = client.create_backup(TableName=aside, BackupName=aside)["BackupDetails"]["BackupArn"]
    client.delete_table(TableName=name)
    client.restore_table_from_backup(TargetTableName=name, BackupArn=backup)

    assert sorted(filled.items(), key=str) == before
    stores = DynamoDbStores(make_client("dynamodb"), name)
    assert stores.jobs.load_job("resnet-1") == replace(make_running_job("resnet-1"), version=1)
    assert stores.machines.load_living(10) == ["m-1"]
