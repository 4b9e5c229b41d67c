"""A jobs table in moto for the adapter's tests, with a look inside."""

import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

from fakes.aws import Faults, create_jobs_table, make_client
from fakes.builders import make_job, make_timeline_entry
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.jobs.job import Job


class ObservedTable:
    """A jobs table of its own; `attempts` is how often botocore sends a call.

    `calls` counts what was called since the last `create`, `pauses` lists how long the store waited.
    """

    def __init__(self, attempts: int) -> None:
        self.client = make_client("dynamodb", attempts=attempts)
        self.name = f"jobs-{uuid.uuid4()}"
        create_jobs_table(self.client, self.name)
        self.pauses: list[float] = []
        self.stores = DynamoDbStores(self.client, self.name, self.pauses.append)
        self.calls: Counter[str] = Counter()
        self.client.meta.events.register("before-call.dynamodb", self._count)

    def _count(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1

    def create(self, job: Job | None = None) -> Job:
        """Create a job and return it as it is loaded."""
        job = job or make_job()
        assert self.stores.jobs.create_job(job, [make_timeline_entry()])
        self.calls.clear()
        return replace(job, version=1)

    def faults(self, operation: str) -> Faults:
        """Return what lets calls of an operation fail."""
        return Faults(self.client, "dynamodb", operation)

    def items(self) -> list[dict[str, Any]]:
        """Return everything that is stored."""
        return list(self.client.scan(TableName=self.name)["Items"])
