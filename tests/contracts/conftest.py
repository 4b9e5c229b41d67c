import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.aws import aws_in_process, create_jobs_table, make_client
from fakes.jobs import InMemoryJobs
from relaunch.adapters.aws.dynamodb.store import DynamoDbJobs


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("dynamodb")


@pytest.fixture(params=["in memory", "DynamoDB"])
def store(request: pytest.FixtureRequest) -> InMemoryJobs | DynamoDbJobs:
    """The jobs table, empty: the fake and the real adapter must behave the same."""
    if request.param == "in memory":
        return InMemoryJobs()
    client = request.getfixturevalue("dynamodb")
    table_name = f"jobs-{uuid.uuid4()}"
    create_jobs_table(client, table_name)
    return DynamoDbJobs(client, table_name)
