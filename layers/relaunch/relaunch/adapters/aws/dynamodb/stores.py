"""The stores of the jobs table."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from relaunch.adapters.aws.dynamodb.capacity import DynamoDbCapacity
from relaunch.adapters.aws.dynamodb.definitions import DynamoDbDefinitions
from relaunch.adapters.aws.dynamodb.events import DynamoDbEvents
from relaunch.adapters.aws.dynamodb.jobs import DynamoDbJobs
from relaunch.adapters.aws.dynamodb.machines import DynamoDbMachines
from relaunch.adapters.aws.dynamodb.maintenance import DynamoDbMaintenance
from relaunch.adapters.aws.dynamodb.table import JobsTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoDbStores:
    """One store per port; `pause` sleeps between retries of conflicting transactions."""

    def __init__(self, client: "DynamoDBClient", table_name: str, pause: Callable[[float], None] = time.sleep) -> None:
        table = JobsTable(client, table_name, pause)
        self.jobs = DynamoDbJobs(table)
        self.machines = DynamoDbMachines(table)
        self.definitions = DynamoDbDefinitions(table)
        self.capacity = DynamoDbCapacity(table)
        self.events = DynamoDbEvents(table)
        self.maintenance = DynamoDbMaintenance(table)
