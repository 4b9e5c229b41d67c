"""The stores of the jobs table, each imported and made when it is first used."""

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from relaunch.adapters.aws.dynamodb import late_stores
from relaunch.adapters.aws.dynamodb.table import JobsTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from relaunch.adapters.aws.dynamodb.late_stores import (
        DynamoDbBudgets,
        DynamoDbCapacity,
        DynamoDbDefinitions,
        DynamoDbEvents,
        DynamoDbJobs,
        DynamoDbMachines,
        DynamoDbMaintenance,
        DynamoDbNotices,
        DynamoDbRates,
    )


class DynamoDbStores:
    """One store per port; `pause` sleeps between retries of conflicting transactions."""

    def __init__(self, client: "DynamoDBClient", table_name: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._table = JobsTable(client, table_name, pause)

    @cached_property
    def jobs(self) -> "DynamoDbJobs":
        """The store of jobs."""
        return late_stores.DynamoDbJobs(self._table)

    @cached_property
    def machines(self) -> "DynamoDbMachines":
        """The store of machines."""
        return late_stores.DynamoDbMachines(self._table)

    @cached_property
    def definitions(self) -> "DynamoDbDefinitions":
        """The store of definitions."""
        return late_stores.DynamoDbDefinitions(self._table)

    @cached_property
    def capacity(self) -> "DynamoDbCapacity":
        """The store of capacity."""
        return late_stores.DynamoDbCapacity(self._table)

    @cached_property
    def events(self) -> "DynamoDbEvents":
        """The store of events."""
        return late_stores.DynamoDbEvents(self._table)

    @cached_property
    def maintenance(self) -> "DynamoDbMaintenance":
        """The store of maintenance."""
        return late_stores.DynamoDbMaintenance(self._table)

    @cached_property
    def budgets(self) -> "DynamoDbBudgets":
        """The store of budgets."""
        return late_stores.DynamoDbBudgets(self._table)

    @cached_property
    def rates(self) -> "DynamoDbRates":
        """The store of rates."""
        return late_stores.DynamoDbRates(self._table)

    @cached_property
    def notice_records(self) -> "DynamoDbNotices":
        """The store of notice records."""
        return late_stores.DynamoDbNotices(self._table)

    def by_port(self) -> dict[str, object]:
        """Return each store by the name of its port."""
        names = (name for name, made in vars(type(self)).items() if isinstance(made, cached_property))
        return {name: getattr(self, name) for name in names}
