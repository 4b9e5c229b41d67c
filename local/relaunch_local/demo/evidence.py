"""demo.json: what happened according to the emulator, the simulator and the logs of the trainings."""

import json
import platform
import time
import zlib
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from relaunch.core.lifecycle.explanation import explain
from relaunch_cli.views.json_output.jobs import explanation_json
from relaunch_local.demo.session import Session
from relaunch_local.ecs.api.controls import Controls
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.account import CHECKPOINTS
from relaunch_local.stack.build import built_application
from relaunch_local.stack.local_world import LocalWorld

FILE = Path("demo.json")
READ_CONTROLS = ("requests", "state", "bill")


def read_jobs(local: LocalWorld) -> list[dict[str, Any]]:
    """Return the items of all jobs."""
    return [row for row in read_table(local) if row["pk"].startswith("JOB#")]


def read_machines(local: LocalWorld) -> list[dict[str, Any]]:
    """Return all machines as the table has them."""
    return [row["body"] for row in read_table(local) if row["pk"].startswith("MACHINE#")]


def read_table(local: LocalWorld) -> list[dict[str, Any]]:
    """Return all items of the jobs table, with JSON in strings and binaries parsed."""
    pages = local.client("dynamodb").get_paginator("scan").paginate(TableName=local.deployment.outputs["TableName"])
    return [read_item(item) for page in pages for item in page["Items"]]


def read_item(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return an item with plain values."""
    return {name: read_value(*next(iter(typed.items()))) for name, typed in item.items()}


def read_value(kind: str, value: Any) -> Any:
    """Return a DynamoDB value as a plain value; JSON in strings and compressed binaries is parsed."""
    if kind == "B":
        return read_value("S", zlib.decompress(value).decode())
    if kind == "S" and value[:1] in {"{", "["}:
        return json.loads(value)
    if kind == "N":
        return int(value) if value.lstrip("-").isdigit() else float(value)
    return value


def read_simulator(local: LocalWorld) -> dict[str, Any]:
    """Return the simulator's requests, its tasks and instances, and the cost of the instances."""
    controls = Controls(local.simulator, on_shutdown=lambda: None)
    with local.simulator.clock.lock:
        return {name: controls.call(name, {})[1] for name in READ_CONTROLS}


def read_checkpoints(local: LocalWorld, prefix: str = "") -> list[dict[str, Any]]:
    """Return the objects of the checkpoint bucket, with the content of the manifests."""
    s3 = local.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=CHECKPOINTS, Prefix=prefix)
    rows = []
    for found in (each for page in pages for each in page.get("Contents", [])):
        row = {"key": found["Key"], "size": found["Size"], "last_modified": found["LastModified"].isoformat()}
        if found["Key"].endswith("/manifest.json"):
            row["manifest"] = json.loads(s3.get_object(Bucket=CHECKPOINTS, Key=found["Key"])["Body"].read())
        rows.append(row)
    return rows


def read_dead_letters(local: LocalWorld) -> dict[str, int]:
    """Return the number of messages in each dead-letter queue."""
    sqs = local.client("sqs")
    count = "ApproximateNumberOfMessages"
    urls = {name: url for name, url in local.deployment.outputs.items() if name.endswith("DeadLetterQueueUrl")}
    return {
        name.removesuffix("Url"): int(
            sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[count])["Attributes"][count]
        )
        for name, url in urls.items()
    }


def read_versions() -> dict[str, str]:
    """Return the versions of Python, Relaunch and the tools."""
    found = {
        "python": platform.python_version(),
        "runtime": built_application().runtime,
        "relaunch": version("relaunch"),
        "boto3": version("boto3"),
    }
    for name, environment in (("ministack", ".venv-emulator"), ("aws-sam-cli", ".venv-sam")):
        folders = [str(each) for each in (REPOSITORY / environment).glob("lib/python*/site-packages")]
        found[name] = next((each.version for each in distributions(name=name, path=folders)), "unknown")
    return found


def collect_evidence(session: Session, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of demo.json, beginning with the summary of the demo."""
    simulator = read_simulator(session.local)
    return {
        **summary,
        "versions": read_versions(),
        "jobs": {kind: read_job(session, job_id) for kind, job_id in session.jobs.items()},
        "rank_logs": session.write_rank_logs(),
        "actions": session.recorder.actions,
        "requests": simulator["requests"],
        "events": session.recorder.events,
        "stored_at_stop": session.recorder.stored_at_stop,
        "tasks": [*simulator["state"]["stopped_tasks"], *simulator["state"]["tasks"]],
        "instances": simulator["state"]["instances"],
        "bill": simulator["bill"],
        "machines": read_machines(session.local),
        "github_statuses": session.outside.read_statuses(),
        "notices": session.outside.endpoint.taken,
        "dead_letters": read_dead_letters(session.local),
        "checkpoints": read_checkpoints(session.local),
        "table": read_table(session.local),
    }


def read_job(session: Session, job_id: str) -> dict[str, Any]:
    """Return a job as `relaunch explain --json` prints it, with its log by attempt."""
    history = session.deps.jobs.load_history(job_id)
    now = session.deps.clock.now()
    log = session.read_log(job_id)
    shape = explanation_json(history, explain(history.job, now), now) if history else {"job_id": job_id}
    return {**shape, "log": {str(attempt): entries for attempt, entries in log.entries.items()}}


def write_evidence(evidence: Mapping[str, Any], file: Path = FILE) -> None:
    """Write the file atomically: another demo may write it at the same time."""
    partial = file.with_name(f".{file.name}.{time.time_ns()}")
    try:
        partial.write_text(json.dumps(evidence, indent=1, default=datetime.isoformat, ensure_ascii=False) + "\n")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
