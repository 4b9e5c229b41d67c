import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.aws import aws_in_process, create_jobs_table, make_client
from fakes.builders import NOW, make_timeline_entry
from fakes.watched_stores import watched_stores
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.ports import JobStore
from relaunch_local.in_memory.stores import InMemoryStores

Stores = InMemoryStores | DynamoDbStores
HOUR = timedelta(hours=1)
OVER: dict[str, Any] = {"state": JobState.SUCCEEDED, "wake_at": None, "waiting": None, "ended_at": NOW + HOUR}


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("dynamodb")


@pytest.fixture(scope="module", params=["in memory", "DynamoDB"])
def make_stores(request: pytest.FixtureRequest) -> Callable[[], Stores]:
    """Return what makes the stores of an empty jobs table."""
    if request.param == "in memory":
        return InMemoryStores
    client = request.getfixturevalue("dynamodb")

    def make() -> Stores:
        table_name = f"jobs-{uuid.uuid4()}"
        create_jobs_table(client, table_name)
        return watched_stores(client, table_name)

    return make


@pytest.fixture
def stores(make_stores: Callable[[], Stores]) -> Stores:
    """The stores of an empty jobs table: the fakes and the real adapters must behave the same."""
    return make_stores()


@pytest.fixture
def sqs() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("sqs")


def create(store: JobStore, job: Job) -> Job:
    assert store.create_job(job, [make_timeline_entry()])
    return replace(job, version=1)
