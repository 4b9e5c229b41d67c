"""Jobs in the local world: how tests start them, wait for them, and read what became of them."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

from fakes.webhook import load_event, make_request, post
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.ownership import Owner
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.settings import JOB_TAG, MACHINE_TAG
from relaunch.ports import Dependencies, JobHistory
from relaunch.usecases.register_definitions import compare_definitions, register_definitions
from relaunch_cli.aws.connection import AwsConnection
from relaunch_local.demo.schedule import running_schedule
from relaunch_local.ecs import RecordedRequest
from relaunch_local.ecs.engine.model import InstanceState
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.account import CHECKPOINTS, LOG_GROUP
from relaunch_local.stack.deployment import STACK
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.stack.training_cluster import CLUSTER

TIMEOUT_SECONDS = 300.0
PAUSE_SECONDS = 0.1


Answer = TypeVar("Answer")


def eventually(ask: Callable[[], Answer | None]) -> Answer:
    """Poll until there is a value, and return it."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (answer := ask()) is None:
        assert time.monotonic() < deadline, f"nothing came of {ask.__qualname__}"
        time.sleep(PAUSE_SECONDS)
    return answer


def push(world: LocalWorld, commit: str) -> int:
    """Deliver a push of this commit as GitHub does; return the HTTP status."""
    body = json.dumps(load_event("github.push") | {"after": commit}).encode()
    delivery = {"x-github-delivery": f"delivery-of-{commit}"}
    return post(world.deployment.webhook_url, make_request(body, delivery, secret=world.deployment.webhook_secret))


def new_job(relaunch: Dependencies, known: set[str]) -> str:
    """Return the id of the new job."""
    return eventually(lambda: next(iter(job_ids(relaunch) - known), None))


def job_ids(relaunch: Dependencies) -> set[str]:
    return {summary.job_id for summary in relaunch.jobs.list_jobs(limit=100)[0]}


def history_of(relaunch: Dependencies, job_id: str) -> JobHistory:
    history = relaunch.jobs.load_history(job_id)
    assert history is not None
    return history


def running_on(relaunch: Dependencies, job_id: str) -> str:
    """Return the instance of the job's task, once there is a checkpoint."""

    def instance() -> str | None:
        attempts = history_of(relaunch, job_id).attempts
        uri = f"s3://{CHECKPOINTS}/demo/"
        saved = relaunch.checkpoints.newest_complete(uri, job_id)
        return attempts[-1].instance_id if attempts and saved else None

    return eventually(instance)


def machines_of(world: LocalWorld, relaunch: Dependencies, job_id: str) -> list[Machine]:
    """Return the machines that EC2 was asked for a job, in order."""
    asked = dict.fromkeys(tags_of(each)[MACHINE_TAG] for each in fleets_of(world, job_id))
    found = [relaunch.machines.load_machine(machine_id) for machine_id in asked]
    return [machine for machine in found if machine is not None]


def fleets_of(world: LocalWorld, job_id: str) -> list[RecordedRequest]:
    """Return the CreateFleet requests of a job."""
    made = [each for each in list(world.simulator.requests) if each.action == "CreateFleet"]
    return [each for each in made if tags_of(each).get(JOB_TAG) == job_id]


def tags_of(fleet: RecordedRequest) -> dict[str, str]:
    """Return the tags of the instance that a CreateFleet request launches."""
    (tags,) = (each["Tags"] for each in fleet.parameters["TagSpecifications"] if each["ResourceType"] == "instance")
    return {tag["Key"]: tag["Value"] for tag in tags}


def ended_machines(world: LocalWorld, relaunch: Dependencies, job_id: str) -> list[Machine]:
    """Return the machines of a job that has ended, once EC2 has terminated all of them."""

    def ended() -> list[Machine] | None:
        machines = machines_of(world, relaunch, job_id)
        return machines if machines and all(each.state is MachineState.GONE for each in machines) else None

    with world.simulator.clock.lock:
        world.simulator.finish_interruptions()
    with running_schedule(world):
        machines = eventually(ended)
    launched = {each.instance_id for each in machines} - {None}
    with world.simulator.clock.lock:
        states = {each: world.simulator.instance(each).state for each in launched if each}
    assert set(states.values()) <= {InstanceState.TERMINATED}
    return machines


def apply(relaunch: Dependencies, name: str, **settings: Any) -> None:
    """Register the definition of the examples under another name, without triggers, with these settings changed.

    The parser of YAML 1.1 takes the key `on` for a boolean.
    """
    example = yaml.safe_load((REPOSITORY / "examples" / "relaunch.yaml").read_text())["jobs"]["demo"]
    definition = {key: value for key, value in example.items() if key not in {True, "inputs"}} | settings
    definitions = parse_definitions(yaml.safe_dump({"jobs": {name: definition}}), f"{name}.yaml", load_catalogue())
    owner = Owner("", f"{name}.yaml", AwsConnection(STACK).caller)
    register_definitions(
        compare_definitions(definitions, relaunch.definitions.list_registered(), owner), owner, relaunch
    )


def submit(world: LocalWorld, name: str) -> str:
    """Submit a job of a definition; return its ID."""
    request = {"action": "submit", "definition": name, "idempotency_key": name}
    answer = world.client("lambda").invoke(
        FunctionName=world.deployment.resources["JobApiFunction"], Payload=json.dumps(request).encode()
    )
    return str(json.loads(answer["Payload"].read())["job"]["job_id"])


def outcome(relaunch: Dependencies, job_id: str) -> JobHistory:
    """Return the job's history, once the job has ended."""

    def over() -> JobHistory | None:
        history = history_of(relaunch, job_id)
        return history if history.job.state.is_final else None

    return eventually(over)


def output_of(world: LocalWorld, job_id: str) -> list[dict[str, Any]]:
    """Return the log entries of the job's containers, in order."""

    def written() -> list[dict[str, Any]] | None:
        pages = world.client("logs").get_paginator("filter_log_events").paginate(logGroupName=LOG_GROUP)
        messages = [event["message"] for page in pages for event in page["events"]]
        lines = [json.loads(each) for each in messages if not each.startswith("relaunch: ")]
        own, current = [], False
        for line in lines:
            current = line.get("job_id") == job_id if line["event"] == "started" else current
            if current:
                own.append(line)
        return own if own and own[-1]["event"] == "finished" else None

    return eventually(written)


def run_task_of(world: LocalWorld, job_id: str) -> dict[str, Any]:
    """Return the parameters of the one RunTask request of a job; on a busy machine it may be sent twice, as one."""
    made = (each.parameters for each in world.simulator.requests if each.action == "RunTask")
    own = [each for each in made if each.get("startedBy", "").startswith(job_id)]
    assert [each for each in own if each != own[0]] == []
    return own[0]


def uninterrupted_result(steps: int) -> tuple[float, str]:
    """Return the loss and the weights of the same training without interruption."""
    command = [sys.executable, "-m", "train", "--steps", str(steps)]
    result = subprocess.run(command, cwd=REPOSITORY / "examples", capture_output=True, text=True, check=True, env={})
    last = json.loads(result.stdout.splitlines()[-1])
    return last["loss"], last["weights_sha256"]


def release_when_stopping(world: LocalWorld, relaunch: Dependencies, job_id: str) -> None:
    """Let the training of a job's first attempt save, once it has been told to stop, or never began."""

    def is_told() -> bool | None:
        ecs, asked = world.client("ecs"), {"startedBy": f"{job_id}/1", "desiredStatus": "STOPPED"}
        arns = ecs.list_tasks(cluster=CLUSTER, **asked)["taskArns"]
        tasks = ecs.describe_tasks(cluster=CLUSTER, tasks=arns)["tasks"] if arns else []
        is_stopping = any(each["lastStatus"] == "STOPPING" for each in tasks)
        return is_stopping or history_of(relaunch, job_id).job.state.is_final or None

    eventually(is_told)
    world.release_trainings()
