"""What the samples are about: a local world in which nothing but the containers handles what happens.

The event source mappings are disabled. What a sample presupposes, such as a job whose task runs, is brought about in
this process by the application's own entry points, over the same queues and the same table.
"""

import json
import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from relaunch.core.jobs.job import INVOKE, Job
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.machine import Machine
from relaunch.core.triggers.events import DirectRequest
from relaunch.entrypoints.consumers import handler_of
from relaunch.ports import Dependencies
from relaunch.usecases.submit_job import submit_direct
from relaunch_cli.aws.connection import AwsConnection
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.deployment import STACK
from relaunch_local.stack.emulator import REGION
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.stack.training_cluster import CLUSTER

Value = TypeVar("Value")

DEFINITION = "resnet"
DEFINITIONS = "local/relaunch_local/sam_local/definitions.yaml"
# The secret of the webhook's sample is that of GitHub's example ("Validating webhook deliveries", GitHub Docs).
SAMPLES_SECRET = "It's a Secret to Everybody"  # noqa: S105
BUCKET = "acme-datasets"
_HANDLERS: Mapping[str, Callable[[str, Dependencies], object]] = {
    each.title().replace("-", ""): handler_of(each) for each in ("attempts", "machines", "task-changes")
}
_TIMEOUT_SECONDS = 300.0
_POLL_SECONDS = 0.05


class StageError(Exception):
    """What a sample presupposes could not be brought about; the message says what."""


@dataclass
class SimulatedClock:
    """Implements Clock: a moment that has passed."""

    at: datetime

    def now(self) -> datetime:
        return self.at


@dataclass
class Stage:
    """A local world, with jobs whose tasks run."""

    world: LocalWorld
    deps: Dependencies
    running: deque[str] = field(default_factory=deque)
    """Jobs that no sample was about yet."""
    _submitted: int = 0

    def submit(self, ago: timedelta = timedelta(0)) -> Job:
        """Submit a job, or let one have been submitted a while ago."""
        self._submitted += 1
        deps = replace(self.deps, clock=SimulatedClock(self.deps.clock.now() - ago))
        identity = f"api:key:presupposed-{self._submitted}"
        return submit_direct(DirectRequest(identity, DEFINITION, {"learning_rate": "0.1"}, INVOKE), deps)

    def take_running(self) -> Job:
        """Return a job whose task runs, which no other sample is about."""
        return self.job(self.running.popleft())

    def job(self, job_id: str) -> Job:
        """Return a job as it is stored."""
        job = self.deps.jobs.load_job(job_id)
        if job is None:
            raise StageError(f"there is no job {job_id}")
        return job

    def job_ids(self) -> set[str]:
        """Return the ids of all jobs."""
        return {each.job_id for each in self.deps.jobs.list_jobs(1_000)[0]}

    def machine(self, machine_id: str) -> Machine:
        """Return a machine as it is stored."""
        machine = self.deps.machines.load_machine(machine_id)
        if machine is None:
            raise StageError(f"there is no machine {machine_id!r}")
        return machine

    def machine_of(self, job: Job) -> Machine:
        """Return the machine that the task of a job was placed on."""
        return self.machine(job.current_attempt.placement.machine_id)

    def task_of(self, job: Job) -> Mapping[str, Any]:
        """Return the task of a job as ECS describes it."""
        ecs = self.world.client("ecs")
        started_by = f"{job.job_id}/{job.current_attempt.number}"
        arns = [
            arn
            for status in ("RUNNING", "STOPPED")
            for arn in ecs.list_tasks(cluster=CLUSTER, startedBy=started_by, desiredStatus=status)["taskArns"]
        ]
        if len(arns) != 1:
            raise StageError(f"ECS has {len(arns)} tasks that were started by {started_by}")
        task: Mapping[str, Any] = ecs.describe_tasks(cluster=CLUSTER, tasks=arns)["tasks"][0]
        return task

    def node_of(self, machine: Machine) -> Mapping[str, Any] | None:
        """Return the container instance of a machine as ECS describes it, None before it has registered."""
        ecs = self.world.client("ecs")
        wanted = f"attribute:relaunch.machine == {machine.machine_id}"
        arns = ecs.list_container_instances(cluster=CLUSTER, filter=wanted)["containerInstanceArns"]
        if not arns:
            return None
        node: Mapping[str, Any] = ecs.describe_container_instances(cluster=CLUSTER, containerInstances=arns)[
            "containerInstances"
        ][0]
        return node

    def instances_of(self, machine: Machine) -> list[str]:
        """Return the IDs of the instances that EC2 has with the tag of a machine."""
        wanted = {"Name": "tag:relaunch:machine", "Values": [machine.machine_id]}
        found = self.world.client("ec2").describe_instances(Filters=[wanted])["Reservations"]
        return [instance["InstanceId"] for each in found for instance in each["Instances"]]

    def table(self) -> dict[str, Any]:
        """Return all items of the jobs table."""
        pages = (
            self.world.client("dynamodb")
            .get_paginator("scan")
            .paginate(TableName=self.world.deployment.outputs["TableName"], ConsistentRead=True)
        )
        return {json.dumps([item["pk"], item["sk"]]): item for page in pages for item in page["Items"]}

    def receive(self, queue: str) -> list[str]:
        """Receive and delete the messages of a queue."""
        sqs = self.world.client("sqs")
        url = self.world.deployment.outputs[f"{queue}QueueUrl"]
        bodies: list[str] = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                bodies.append(message["Body"])
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return bodies

    def dead_letters(self) -> dict[str, int]:
        """Return how many messages are in each dead-letter queue that has some."""
        sqs = self.world.client("sqs")
        count = "ApproximateNumberOfMessages"
        urls = {name: url for name, url in self.world.deployment.outputs.items() if name.endswith("DeadLetterQueueUrl")}
        answers = {name: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[count]) for name, url in urls.items()}
        counts = {name.removesuffix("Url"): int(answer["Attributes"][count]) for name, answer in answers.items()}
        return {name: number for name, number in counts.items() if number}

    def settle(self, what: str, poll: Callable[[], Value | None], queues: Collection[str] = tuple(_HANDLERS)) -> Value:
        """Handle the messages of these queues until there is a value, and return it.

        Raises:
            StageError: there is none in time.
        """
        ends_at = time.monotonic() + _TIMEOUT_SECONDS
        while (value := poll()) is None:
            if time.monotonic() > ends_at:
                raise StageError(f"not within {_TIMEOUT_SECONDS:.0f} s: {what}")
            for queue in queues:
                for body in self.receive(queue):
                    _HANDLERS[queue](body, self.deps)
            time.sleep(_POLL_SECONDS)
        return value


def set_stage(world: LocalWorld, running: int) -> Stage:
    """Register the definition, and let the tasks of some of its jobs run.

    Raises:
        StageError: it cannot be registered, or no task runs in time.
    """
    client = world.client("lambda")
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    events = world.client("events")
    for rule in events.list_rules()["Rules"]:
        if "ScheduleExpression" in rule:
            events.disable_rule(Name=rule["Name"])
    world.client("secretsmanager").put_secret_value(
        SecretId=world.deployment.outputs["WebhookSecretArn"], SecretString=SAMPLES_SECRET
    )
    s3 = world.client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration={"EventBridgeConfiguration": {}})
    os.environ.update(world.environment())
    register_definition()
    stage = Stage(world, AwsConnection(STACK).deps)
    stage.running.extend(stage.submit().job_id for _ in range(running))

    def all_run() -> bool | None:
        return all(stage.job(each).state is JobState.RUNNING for each in stage.running) or None

    stage.settle("the tasks of all jobs run", all_run)
    return stage


def register_definition() -> None:
    """Register the definition with the command `relaunch apply`.

    Raises:
        StageError: the command failed; the message contains its output.
    """
    command = [str(REPOSITORY / ".venv" / "bin" / "relaunch"), "apply", DEFINITIONS]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise StageError(f"relaunch apply {DEFINITIONS}:\n{result.stdout}{result.stderr}")
