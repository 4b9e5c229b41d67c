import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.aws import aws_in_process, create_jobs_table, make_client
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch_local.in_memory.stores import InMemoryStores


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("dynamodb")


@pytest.fixture(params=["in memory", "DynamoDB"])
def stores(request: pytest.FixtureRequest) -> InMemoryStores | DynamoDbStores:
    """The stores of an empty jobs table: the fakes and the real adapters must behave the same."""
    if request.param == "in memory":
        return InMemoryStores()
    client = request.getfixturevalue("dynamodb")
    table_name = f"jobs-{uuid.uuid4()}"
    create_jobs_table(client, table_name)
    return DynamoDbStores(client, table_name)
