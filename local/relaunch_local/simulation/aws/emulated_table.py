"""The real adapter of the jobs table over an emulated DynamoDB in this process: slower by far, so for a few seeds."""

from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from moto import mock_aws

from relaunch.adapters.aws.dynamodb import job_items
from relaunch.adapters.aws.dynamodb.store import DynamoDbJobs
from relaunch.core.jobs.job import EffectKind
from relaunch.core.offerings.offering import CapacityFailure
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.table import Indexes, OnSaved
from relaunch_local.simulation.aws.template import REGION, read_table

TABLE = "jobs"


class _WatchedClient:
    """Tells of each transaction that wrote a job, at the moment when it took effect."""

    def __init__(self, client: Any, on_written: Callable[[Mapping[str, Any]], None]) -> None:
        self._client = client
        self._on_written = on_written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def transact_write_items(self, **parameters: Any) -> Any:
        answer = self._client.transact_write_items(**parameters)
        self._on_written(parameters)
        return answer


class EmulatedTable:
    """The jobs table of one run, as a port and as it really is."""

    def __init__(
        self, calls: Calls, indexes: Indexes, on_saved: OnSaved, on_effect: Callable[[str, str], None]
    ) -> None:
        """Make the table as the template does."""
        self._mock = mock_aws()
        self._mock.start()
        self._indexes = indexes
        self._on_saved = on_saved
        self._on_effect = on_effect
        config = Config(retries={"total_max_attempts": 1, "mode": "standard"})
        # Named, so that no environment leads elsewhere.
        url = f"https://dynamodb.{REGION}.amazonaws.com"
        client: Any = boto3.client("dynamodb", region_name=REGION, endpoint_url=url, config=config)
        client.create_table(TableName=TABLE, **read_table())
        runtime = calls.runtime
        watched: Any = CallingClient("dynamodb", _WatchedClient(client, self._written), calls)
        self.raw = DynamoDbJobs(client, TABLE, lambda _seconds: None)
        self._adapter = DynamoDbJobs(watched, TABLE, lambda seconds: runtime.pause(seconds, "dynamodb: waits"))

    def __getattr__(self, name: str) -> Any:
        """Every method of the adapter but those below."""
        return getattr(self._adapter, name)

    def remember(self, failure: CapacityFailure) -> None:
        """Remember a failure of capacity, and tell of it."""
        self._adapter.remember(failure)
        self._on_effect(EffectKind.REMEMBER_CAPACITY, str(failure.offering))

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        """Load who waits for a slot, and tell of it."""
        found = self._adapter.load_waiting(slot, limit)
        self._on_effect(EffectKind.ADMIT_WAITING, slot)
        return found

    def close(self) -> None:
        """Forget the table."""
        self._mock.stop()

    def _written(self, parameters: Mapping[str, Any]) -> None:
        put = [each["Put"]["Item"] for each in parameters["TransactItems"] if "Put" in each]
        body = next((item for item in put if item["sk"]["S"] == "JOB"), None)
        if body is None:
            return
        job = self.raw.load_job(job_items.job_id_of(body["pk"]["S"]))
        if job is None:
            raise LookupError(body["pk"]["S"])
        timeline = [job_items.read_timeline_entry(item) for item in put if item["sk"]["S"].startswith("TIMELINE#")]
        self._indexes.note(job)
        self._on_saved(job, timeline, job.version == 1)
