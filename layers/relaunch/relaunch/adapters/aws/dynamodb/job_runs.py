"""The tasks of a job in the jobs table, read without pydantic, whose model of a job takes longer than the call."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from relaunch.adapters.aws.dynamodb.formats import newer_if_invalid
from relaunch.adapters.aws.dynamodb.table import Item, read_body
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.runs import JobRuns, Run, RunContainer, RunDefinition, RunJob, RunRevision, RunStop
from relaunch.core.jobs.state import JobState


def read_runs(items: Sequence[Item]) -> JobRuns:
    """Return the job of the last item and its attempts, those of the others.

    Raises:
        TransientError: this release cannot read one of them.
    """
    *attempts, job = items
    return JobRuns(_read(job, _job), tuple(_read(each, _run) for each in attempts))


def _read(item: Item, parse: Any) -> Any:
    with newer_if_invalid(item):
        try:
            return parse(json.loads(read_body(item)))
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _job(body: Mapping[str, Any]) -> RunJob:
    definition = body["definition"]
    revision = body["revision"]
    containers = tuple(RunContainer(each["name"]) for each in revision["containers"])
    return RunJob(
        body["job_id"],
        JobState(body["state"]),
        RunDefinition(
            Target(definition.get("target", Target.ECS)), definition.get("container"), definition.get("nodes", 1)
        ),
        RunRevision(revision["arn"], containers),
        _time(body.get("ended_at")),
    )


def _run(body: Mapping[str, Any]) -> Run:
    stop = body.get("stop")
    ended = RunStop(datetime.fromisoformat(stop["at"])) if stop else None
    placement = body["placement"]
    ranks = (placement.get("task_id"), *(each["task_id"] for each in placement.get("followers", ())))
    return Run(body["number"], tuple(each for each in ranks if each), ended)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
