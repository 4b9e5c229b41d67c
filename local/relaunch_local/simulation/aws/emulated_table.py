"""The real adapter of the jobs table over an emulated DynamoDB in this process; slow, so used for a few seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config
from moto import mock_aws

from relaunch.adapters.aws.dynamodb import job_items, machine_items
from relaunch.adapters.aws.dynamodb.capacity import DynamoDbCapacity
from relaunch.adapters.aws.dynamodb.job_listing import job_id_of
from relaunch.adapters.aws.dynamodb.jobs import DynamoDbJobs
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.core.jobs.effects import AdmitWaiting, CountRun, LookForWarning, RememberCapacity
from relaunch.core.machines.machine import Machine
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import SpotRun
from relaunch_local.dynamodb.filters import refuse_keys_in_filters
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.table import Indexes, OnEffect, OnSaved
from relaunch_local.simulation.aws.template import REGION, read_table

TABLE = "jobs"


@dataclass(frozen=True, slots=True)
class _ReportingClient:
    """Reports each transaction when it takes effect."""

    _client: Any
    _on_written: Callable[[Mapping[str, Any]], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def transact_write_items(self, **parameters: Any) -> Any:
        answer = self._client.transact_write_items(**parameters)
        self._on_written(parameters)
        return answer


class _ReportingCapacity(DynamoDbCapacity):
    def __init__(self, table: JobsTable, on_effect: OnEffect) -> None:
        super().__init__(table)
        self._on_effect = on_effect

    def remember(self, failure: CapacityFailure) -> None:
        super().remember(failure)
        self._on_effect(RememberCapacity, str(failure.offering))

    def count_run(self, run: SpotRun) -> None:
        super().count_run(run)
        self._on_effect(CountRun, f"{run.run_id} {run.what}")


class _ReportingJobs(DynamoDbJobs):
    def __init__(self, table: JobsTable, on_effect: OnEffect) -> None:
        super().__init__(table)
        self._on_effect = on_effect

    def load_warning(self, instance_id: str) -> datetime | None:
        found = super().load_warning(instance_id)
        self._on_effect(LookForWarning, instance_id)
        return found

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        found = super().load_waiting(slot, limit)
        self._on_effect(AdmitWaiting, slot)
        return found


class EmulatedTable:
    """The jobs table of one run: the stores the application uses, and the table's true content."""

    def __init__(
        self,
        calls: Calls,
        indexes: Indexes,
        authorized: Callable[[Any], Any],
        on_saved: OnSaved,
        on_effect: OnEffect,
        on_machine: Callable[[Machine], None],
    ) -> None:
        """Create the table of the template; `authorized` lets functions make only the calls that they may make."""
        self._mock = mock_aws()
        self._mock.start()
        self._indexes = indexes
        self._on_saved = on_saved
        self._on_machine = on_machine
        config = Config(retries={"total_max_attempts": 1, "mode": "standard"})
        # Explicit, so that no environment variable redirects it.
        url = f"https://dynamodb.{REGION}.amazonaws.com"
        client: Any = boto3.client("dynamodb", region_name=REGION, endpoint_url=url, config=config)
        self._client = client
        client.create_table(TableName=TABLE, **read_table())
        refuse_keys_in_filters(client, read_table())
        runtime = calls.runtime
        reporting: Any = CallingClient("dynamodb", _ReportingClient(authorized(client), self._written), calls)
        self.raw = DynamoDbStores(client, TABLE, lambda _seconds: None)
        table = self.table = JobsTable(reporting, TABLE, lambda seconds: runtime.pause(seconds, "dynamodb: waits"))
        self.stores = DynamoDbStores(reporting, TABLE, lambda seconds: runtime.pause(seconds, "dynamodb: waits"))
        self.stores.jobs = _ReportingJobs(table, on_effect)
        self.stores.capacity = _ReportingCapacity(table, on_effect)

    def delete_expired(self, at: datetime, is_its_turn: Callable[[], bool]) -> None:
        """Delete the items that have expired by then and whose turn it is."""
        scanned = {"TableName": TABLE, "FilterExpression": "attribute_exists(expires_at)"}
        pages = self._client.get_paginator("scan").paginate(**scanned)
        for item in [item for page in pages for item in page["Items"]]:
            if int(item["expires_at"]["N"]) <= at.timestamp() and is_its_turn():
                self._client.delete_item(TableName=TABLE, Key={name: item[name] for name in ("pk", "sk")})

    def close(self) -> None:
        """Delete the table."""
        self._mock.stop()

    def _written(self, parameters: Mapping[str, Any]) -> None:
        put: list[dict[str, Any]] = [each["Put"]["Item"] for each in parameters["TransactItems"] if "Put" in each]
        self._job_written(put)
        for item in put:
            if item["pk"]["S"].startswith(machine_items.machine_pk("")):
                self._on_machine(machine_items.read_machine(item))

    def _job_written(self, put: Sequence[dict[str, Any]]) -> None:
        body = next((item for item in put if item["sk"]["S"] == "JOB"), None)
        if body is None:
            return
        job = self.raw.jobs.load_job(job_id_of(body["pk"]["S"]))
        if job is None:
            raise LookupError(body["pk"]["S"])
        timeline = [job_items.read_timeline_entry(item) for item in put if item["sk"]["S"].startswith("TIMELINE#")]
        self._indexes.note(job)
        self._on_saved(job, timeline)
