"""What demo.json says of a demo: its jobs, their tasks and machines, and what ECS and EC2 were asked."""

from datetime import datetime
from typing import Any

from relaunch.core.launches.derived_revision import DERIVED_FROM

Json = dict[str, Any]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def run_tasks(evidence: Json, job: Json) -> list[Json]:
    """Return the RunTask requests of a job."""
    requests = (each for each in evidence["requests"] if each["action"] == "RunTask")
    return [each for each in requests if each["parameters"]["startedBy"].startswith(f"{job['job_id']}/")]


def origin_of(evidence: Json, definition: str) -> str:
    """Return the revision that a derived one was made from, by its tag; other revisions are returned unchanged."""
    family = definition.rpartition("/")[2].partition(":")[0]
    registered = (each for each in evidence["requests"] if each["action"] == "RegisterTaskDefinition")
    tags = [each["parameters"]["tags"] for each in registered if each["parameters"]["family"] == family]
    return next((tag["value"] for tag in tags[0] if tag["key"] == DERIVED_FROM), definition) if tags else definition


def first_stop(evidence: Json) -> Json:
    """Return the first StopTask request; on a busy machine the task may be stopped twice, which is harmless."""
    stops: list[Json] = [each for each in evidence["requests"] if each["action"] == "StopTask"]
    assert len({each["parameters"]["task"] for each in stops}) == 1
    return stops[0]


def environment(request: Json) -> dict[str, str]:
    (override,) = request["parameters"]["overrides"]["containerOverrides"]
    return {each["name"]: each["value"] for each in override["environment"]}


def tasks_of(evidence: Json, job: Json) -> list[Json]:
    tasks = (each for each in evidence["tasks"] if each["startedBy"].startswith(f"{job['job_id']}/"))
    return sorted(tasks, key=lambda each: each["startedBy"])


def tags_of(fleet: Json) -> dict[str, str]:
    (tags,) = (each["Tags"] for each in fleet["TagSpecifications"] if each["ResourceType"] == "instance")
    return {each["Key"]: each["Value"] for each in tags}


def fleets_of(evidence: Json, job: Json) -> list[Json]:
    """Return the CreateFleet requests of a job, in order."""
    requests = (each for each in evidence["requests"] if each["action"] == "CreateFleet")
    return [each for each in requests if tags_of(each["parameters"])["relaunch:job"] == job["job_id"]]


def machines_of(evidence: Json, job: Json) -> list[Json]:
    """Return the machines that were requested for a job, in order."""
    machines = {each["machine_id"]: each for each in evidence["machines"]}
    return [machines[tags_of(each["parameters"])["relaunch:machine"]] for each in fleets_of(evidence, job)]


def entries(job: Json, attempt: int, event: str) -> list[Json]:
    return [each for each in job["log"][str(attempt)] if each["event"] == event]


def complete_manifests(evidence: Json, job: Json, before: datetime) -> list[Json]:
    """Return the manifests stored before a time whose objects are all stored with the right size."""
    sizes = {row["key"]: row["size"] for row in evidence["checkpoints"]}
    rows = [row for row in evidence["checkpoints"] if "manifest" in row and f"/{job['job_id']}/" in row["key"]]
    return [
        row["manifest"]
        for row in rows
        if moment(row["last_modified"]) <= before
        and all(
            sizes.get(f"{row['key'].removesuffix('manifest.json')}{each['key']}") == each["size"]
            for each in row["manifest"]["objects"]
        )
    ]


def notices_of(evidence: Json, job: Json) -> list[str]:
    """Return the kinds of the notices of a job that the endpoint got, in order."""
    all_data = (each["data"] for each in evidence["notices"])
    return [data["kind"] for data in all_data if data["event"]["job_id"] == job["job_id"]]


def place_of(named: Json) -> tuple[str, str, str]:
    """Return type, purchase option and zone of an offering, or of an attempt."""
    return named["instance_type"], named["purchase"], named["zone"]


def lost_places(evidence: Json) -> set[tuple[str, str, str]]:
    """Return where jobs lost their machine."""
    attempts = [attempt for job in evidence["jobs"].values() for attempt in job["attempts"]]
    return {place_of(each) for each in attempts if each["stop"]["kind"] in ("interruption", "host-lost")}
