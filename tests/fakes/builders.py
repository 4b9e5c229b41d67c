"""Definitions, revisions, offerings and jobs with sensible values; name only what a test is about.

Every builder takes the fields of what it builds as keyword arguments.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic.alias_generators import to_camel

from relaunch.adapters.aws.dynamodb.job_body import STORED_NAMES
from relaunch.adapters.aws.ecs.events import observe_task
from relaunch.adapters.aws.ecs.run_task import failed_placement
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.core.jobs.attempt import Attempt, AttemptKey, Placement, PlacementState
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.launches.launch import LaunchRequest, Node, PlacementFailed, TaskObservation, WholeGpus
from relaunch.core.market.learning import PoolRecord, granted
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityFailure, Offering, OfferingKey
from relaunch.core.offerings.spot_runs import SpotPool, pool_hours
from relaunch.core.revisions.revision import ContainerRequirement, Revision
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
CLUSTER = "relaunch"
INSTANCE_ID = "i-0123456789abcdef0"


def _arn(resource: str) -> str:
    return f"arn:aws:ecs:us-east-1:111122223333:{resource}"


def task_id(number: int = 1) -> str:
    """Return the ARN of a task of the test's cluster."""
    return _arn(f"task/{CLUSTER}/{number:032x}")


def container_instance_arn(number: int = 1) -> str:
    """Return the ARN of a container instance of the test's cluster."""
    return _arn(f"container-instance/{CLUSTER}/{number:032x}")


def make_definition(**fields: Any) -> JobDefinition:
    """Build the definition `resnet`: one GPU of 16 GiB, started by pushes to acme/vision's main."""
    definition = JobDefinition(
        name="resnet",
        task_definition="trainer",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=16 * 1024)),
        container="main",
        triggers=(GithubTrigger(repository="acme/vision", event="push", branches=("main",)),),
        command=("python", "-m", "train"),
        checkpoint_uri="s3://acme-checkpoints/resnet/",
    )
    return replace(definition, **fields)


def make_container(**fields: Any) -> ContainerRequirement:
    """Build the container `main`: one GPU, 4 vCPU, 12 GiB, and 90 s to save."""
    container = ContainerRequirement(
        name="main",
        image="111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer:latest",
        gpu_count=1,
        memory_mib=12 * 1024,
        vcpus=3.0,
        stop_timeout_seconds=90,
    )
    return replace(container, **fields)


def make_revision(family: str = "trainer", revision: int = 7, **fields: Any) -> Revision:
    """Build a revision with the one container of `make_container`; ECS reserves what its containers ask for."""
    containers = fields.get("containers", (make_container(),))
    built = Revision(
        arn=_arn(f"task-definition/{family}:{revision}"),
        family=family,
        revision=revision,
        containers=containers,
        vcpus=sum(each.vcpus for each in containers),
        memory_mib=sum(each.memory_mib for each in containers),
    )
    return replace(built, **fields)


def make_instance_type(name: str = "g5.xlarge", **fields: Any) -> InstanceType:
    """Build an instance type with one A10G."""
    built = InstanceType(
        name=name,
        vcpus=4,
        memory_mib=16 * 1024,
        architecture="x86_64",
        accelerator_manufacturer="NVIDIA",
        accelerator_model="A10G",
        gpu_count=1,
        logical_gpu_count=1,
        gpu_memory_mib=22_888,
        source="a test",
    )
    return replace(built, **fields)


def make_offering(
    instance_type: str | InstanceType = "g5.xlarge", purchase: PurchaseOption = PurchaseOption.SPOT, **fields: Any
) -> Offering:
    """Build an offering without a zone, of a capacity provider named after it: spot costs 0.40, on-demand 1.00."""
    built_type = instance_type if isinstance(instance_type, InstanceType) else make_instance_type(instance_type)
    offering = Offering(
        instance_type=built_type,
        purchase=purchase,
        price_usd_per_hour=0.40 if purchase is PurchaseOption.SPOT else 1.00,
        price_at=NOW - timedelta(minutes=5),
        on_demand_usd_per_hour=1.00,
        capacity_provider=f"{built_type.name.replace('.', '-')}-{purchase}",
    )
    return replace(offering, **fields)


def make_offering_key(
    instance_type: str = "g5.xlarge", zone: str | None = None, purchase: PurchaseOption = PurchaseOption.SPOT
) -> OfferingKey:
    """Build the key of the offering of `make_offering`."""
    return OfferingKey(instance_type, zone, purchase)


def make_capacity_failure(**fields: Any) -> CapacityFailure:
    """Build a failure of the usual offering, to be avoided for 30 minutes from NOW."""
    failure = CapacityFailure(
        offering=make_offering_key(), reason="interrupted", at=NOW, until=NOW + timedelta(minutes=30)
    )
    return replace(failure, **fields)


def make_spot_pool(offering: OfferingKey | None = None, **fields: Any) -> SpotPool:
    """Build the record of a pool, the usual offering in a zone if none is named, that had capacity at NOW."""
    key = offering or make_offering_key(zone="us-east-1a")
    return replace(SpotPool(key, granted(PoolRecord(str(key)), pool_hours(NOW))), **fields)


def make_selection(**fields: Any) -> Selection:
    """Build a selection that kept one offering and rejected another."""
    dear = make_offering("g5.48xlarge", PurchaseOption.ON_DEMAND, price_usd_per_hour=16.288)
    selection = Selection(
        kept=(make_offering(),),
        rejected=(RejectedOffering(dear, "price cap", Rejection("16.29 USD per hour is more than 4.00")),),
        filter_counts=(("accelerator", 2, 2), ("price cap", 2, 1)),
    )
    return replace(selection, **fields)


def make_placement(number: int = 1, **fields: Any) -> Placement:
    """Build a try that was just frozen."""
    placement = Placement(
        number=number,
        offering=make_offering_key(),
        capacity_provider="g5-xlarge-spot",
        price_usd_per_hour=0.40,
        requested_at=NOW,
    )
    return replace(placement, **fields)


def make_attempt(number: int = 1, **fields: Any) -> Attempt:
    """Build an attempt whose first try was just frozen."""
    return replace(Attempt(number=number, placement=make_placement()), **fields)


def make_running_attempt(number: int = 1, **fields: Any) -> Attempt:
    """Build an attempt whose task runs since NOW on INSTANCE_ID."""
    attempt = Attempt(
        number=number,
        placement=make_placement(state=PlacementState.PLACED, task_id=task_id(number)),
        task_status="RUNNING",
        task_version=5,
        node=container_instance_arn(),
        instance_id=INSTANCE_ID,
        zone="us-east-1a",
        started_at=NOW,
    )
    return replace(attempt, **fields)


def with_stored(job: Job, **fields: Any) -> Job:
    """Return the job with other fields; those of its records have the names that they are stored by."""
    parts: dict[str, dict[str, Any]] = {"": {}}
    for name, value in fields.items():
        record, _, attribute = STORED_NAMES.get(name, name).rpartition(".")
        parts.setdefault(record, {})[attribute] = value
    own = parts.pop("")
    return replace(job, **own, **{record: replace(getattr(job, record), **given) for record, given in parts.items()})


def make_job(job_id: str = "resnet-1f2e3d4c", **fields: Any) -> Job:
    """Build a job that was accepted NOW and waits for its launch; not stored yet (version 0).

    The fields of its records have the names that they are stored by.
    """
    job = Job(
        job_id=job_id,
        definition=make_definition(),
        trigger=TriggerFacts(
            source="github push",
            identity="github:push:acme/vision:refs/heads/main:9d1c:5e07",
            summary="push of 5e07 to main of acme/vision",
            environment={"RELAUNCH_GIT_SHA": "5e07"},
        ),
        revision=make_revision(),
        accepted_at=NOW,
        state=JobState.WAITING,
        state_since=NOW,
        waiting=Waiting(WaitReason.LAUNCH, since=NOW, detail="its launch was asked for"),
        wake_at=NOW + timedelta(minutes=1),
    )
    return with_stored(job, **fields)


def make_running_job(job_id: str = "resnet-1f2e3d4c", **fields: Any) -> Job:
    """Build a job whose first attempt runs since NOW."""
    running: dict[str, Any] = {
        "state": JobState.RUNNING,
        "waiting": None,
        "attempt": make_running_attempt(),
        "has_slot": True,
        "first_started_at": NOW,
    }
    return make_job(job_id, **{**running, **fields})


def make_timeline_entry(event: str = "accepted", **fields: Any) -> TimelineEntry:
    """Build a timeline entry of NOW."""
    return replace(TimelineEntry(at=NOW, state=JobState.WAITING, event=event), **fields)


def make_launch_request(**fields: Any) -> LaunchRequest:
    """Build the request of the first try of `make_job`'s first attempt."""
    request = LaunchRequest(
        attempt=AttemptKey("resnet-1f2e3d4c", 1),
        placement_number=1,
        revision_arn=make_revision().arn,
        container="main",
        command=("python", "-m", "train"),
        environment={"RELAUNCH_JOB_ID": "resnet-1f2e3d4c", "RELAUNCH_ATTEMPT": "1"},
        offering=make_offering_key(),
        accelerators=WholeGpus(1),
        capacity_provider="g5-xlarge-spot",
    )
    return replace(request, **fields)


def make_failed_placement(*reasons: str, detail: str = "") -> PlacementFailed:
    """Build what becomes of a launch that ECS answers with these failures."""
    return replace(failed_placement(reasons), detail=detail)


def make_observation(last_status: str = "PROVISIONING", **words: Any) -> TaskObservation:
    """Build what ECS says of the first task of `make_job`; `words` are members of the task in snake case.

    `container_exit_codes`, `container_reasons` and `container_statuses` are by container name.
    """
    codes: dict[str, int | None] = words.pop("container_exit_codes", {})
    reasons: dict[str, str] = words.pop("container_reasons", {})
    statuses: dict[str, str] = words.pop("container_statuses", {})
    containers = [
        {"name": name, "exitCode": codes.get(name), "reason": reasons.get(name), "lastStatus": statuses.get(name)}
        for name in {**codes, **reasons, **statuses}
    ]
    task = {
        "task_arn": words.pop("task_id", task_id()),
        "container_instance_arn": words.pop("node", None),
        "availability_zone": words.pop("zone", None),
        "started_by": "resnet-1f2e3d4c/1",
        "last_status": last_status,
        "desired_status": "RUNNING",
        "version": 1,
        "created_at": NOW,
    }
    return observe_task({**{to_camel(name): said for name, said in (task | words).items()}, "containers": containers})


def make_node(**fields: Any) -> Node:
    """Build the node on INSTANCE_ID."""
    node = Node(container_instance_arn(), INSTANCE_ID, "g5.xlarge", "us-east-1a")
    return replace(node, **fields)
