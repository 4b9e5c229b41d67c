"""Of two transactions that meet at an item DynamoDB cancels one, and what it names is where they met."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.core.models import botocore_stubber

from fakes.aws import aws_in_process, create_jobs_table, make_client
from relaunch_local.dynamodb import transactions


def puts(*names: str) -> list[dict[str, Any]]:
    keys = [{"pk": {"S": each}, "sk": {"S": "JOB"}} for each in names]
    return [{"Put": {"TableName": "jobs", "Item": each}} for each in keys]


def test_of_two_transactions_that_meet_one_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals: list[Any] = []

    def meanwhile(event_name: str, request: Any) -> Any:
        if not refusals:
            refusals.append(None)
            with pytest.raises(ClientError) as refused:
                client.transact_write_items(TransactItems=puts("c", "b"))
            refusals[0] = [each["Code"] for each in refused.value.response["CancellationReasons"]]
        return botocore_stubber(event_name, request)

    with aws_in_process():
        client = make_client("dynamodb")
        create_jobs_table(client, "jobs")
        transactions.keep_apart(client)
        monkeypatch.setattr(transactions, "botocore_stubber", meanwhile)

        client.transact_write_items(TransactItems=puts("a", "b"))

        assert refusals == [["None", "TransactionConflict"]]
        client.transact_write_items(TransactItems=puts("c", "b"))
        assert client.scan(TableName="jobs")["Count"] == 3
