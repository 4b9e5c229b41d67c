"""The launch request of a placement try, derived from the job only."""

import zlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.jobs.attempt import Placement
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import (
    Accelerators,
    AllNeuronDevices,
    LaunchRequest,
    NeuronDevices,
    WholeGpus,
    choose_gpus,
)
from relaunch.core.revisions.revision import (
    PROCESSES,
    SHUTDOWN_TIMEOUT,
    STOP_TIMEOUT_SECONDS,
    find_main,
    find_stop_timeout,
    main_container,
    shutdown_seconds,
)

OLDEST_PLACEMENT = timedelta(minutes=50)
"""The age from which on a placement is not sent again: a client token is valid for at least an hour after its task
ended (Amazon ECS API Reference, "Ensuring idempotency")."""
OLDEST_GANG_PLACEMENT = timedelta(minutes=10)
"""The same of a job of several nodes: the first rank waits so long for the others, by the static rendezvous of
torchrun, and its machines are paid meanwhile."""


def plan_launch(job: Job) -> LaunchRequest:
    """Return the launch request of the current placement try; it is identical for identical jobs."""
    attempt = job.current_attempt
    definition = job.definition
    placement = attempt.placement
    is_pod = definition.target.capabilities.runs_pods
    # A cluster makes the pods of all ranks of one request, and tells each what is its own.
    nodes = definition.nodes if is_pod else 1
    return LaunchRequest(
        attempt=job.attempt_key,
        placement_number=placement.number,
        revision_arn=placement.revision_arn or job.revision.arn,
        container=main_container(definition, job.revision) or "",
        command=definition.command,
        environment={**training_environment(job), **(_of_all_ranks(job) if nodes > 1 else {})},
        offering=placement.offering,
        accelerators=_accelerators(job, placement),
        capacity_provider=placement.capacity_provider,
        instance_id=placement.instance_id,
        avoided_instances=job.faults.avoided_instances,
        network_mode=job.revision.network_mode,
        own_constraint_count=job.revision.placement_constraint_count,
        workload=_workload(job) if is_pod else None,
        gpu=definition.accelerator.gpu if is_pod else None,
        followers=tuple(each.instance_id for each in placement.followers),
        rank_environment=tuple(rank_environment(job, rank) for rank in range(len(placement.ranks)))
        if placement.followers
        else (),
        nodes=nodes,
    )


def _workload(job: Job) -> KubernetesWorkload | None:
    """Return the workload with the image by its digest, where that is known."""
    workload = job.definition.kubernetes
    return replace(workload, image=pod_image(job)) if workload is not None else None


def pod_image(job: Job) -> str:
    """Return the image of the pod of a job, by its digest where that is known; empty for a job without a workload."""
    workload = job.definition.kubernetes
    container = main_container(job.definition, job.revision) or ""
    return job.images.get(container, workload.image) if workload is not None else ""


def _accelerators(job: Job, placement: Placement) -> Accelerators | None:
    if placement.takes_all_neuron:
        return AllNeuronDevices()
    if placement.neuron_devices:
        return NeuronDevices(placement.neuron_devices)
    return choose_gpus(job.definition.accelerator.gpu, placement.gpu_partition_size)


def training_environment(job: Job) -> Mapping[str, str]:
    """Return the environment of the main container; the definition cannot override variables set by Relaunch."""
    attempt = job.current_attempt
    environment = {
        **job.definition.environment,
        **{f"RELAUNCH_INPUT_{name.upper().replace('-', '_')}": value for name, value in job.inputs.items()},
        **job.trigger.environment,
        "RELAUNCH_JOB_ID": job.job_id,
        "RELAUNCH_ATTEMPT": str(attempt.number),
    }
    if job.definition.checkpoint_uri is not None:
        environment["RELAUNCH_CHECKPOINT_URI"] = f"{job_checkpoint_uri(job)}attempt-{attempt.number}/"
    if attempt.placement.resume_uri is not None:
        environment["RELAUNCH_RESUME_URI"] = attempt.placement.resume_uri
    return environment


_FIRST_PORT = 29_500
_PORTS = 1_000


def rank_environment(job: Job, rank: int) -> Mapping[str, str]:
    """Return what the container of a rank has beside the environment that all have.

    With the variables `PET_*` torchrun needs no option to find the others: it takes them for its options (`env` in
    torch.distributed.argparse_util), and node ranks as they are given, by a static rendezvous at rank 0. Each placement
    meets at another port, so that a task of an earlier one that still runs joins none.
    """
    return {**_of_all_ranks(job), **own_of_rank(job.definition.environment, str(rank), _master_address(job))}


def own_of_rank(given: Mapping[str, str], rank: str, address: str) -> Mapping[str, str]:
    """Return what is of one rank alone, or says where the first one is; `given` is what the definition sets itself."""
    own = {"PET_NODE_RANK": rank, "PET_MASTER_ADDR": address}
    kept = {name: value for name, value in own.items() if name not in given}
    return {**kept, "RELAUNCH_NODE_RANK": rank, "RELAUNCH_MASTER_ADDR": address}


def _master_address(job: Job) -> str:
    return job.current_attempt.placement.master_address


def _of_all_ranks(job: Job) -> Mapping[str, str]:
    """Return what all ranks of a job of several nodes have alike, but for the address of the first.

    torchrun starts one process a node, on however many GPUs, unless it has a number (`--nproc-per-node`,
    torch.distributed.run). One in its command wins over the variable, and what the job says itself is kept.
    """
    attempt = job.current_attempt
    group = f"{job.job_id}/{attempt.number}/{attempt.placement.number}"
    port = str(_FIRST_PORT + zlib.crc32(group.encode()) % _PORTS)
    nodes = str(job.definition.nodes)
    timeout = find_stop_timeout(job.definition, job.revision)
    own = {
        "PET_NNODES": nodes,
        "PET_MASTER_PORT": port,
        # torchrun makes a folder of this name (`_make_log_dir` in torch.distributed.elastic.multiprocessing).
        "PET_RDZV_ID": group.replace("/", "-"),
        SHUTDOWN_TIMEOUT: str(shutdown_seconds(timeout.seconds if timeout is not None else STOP_TIMEOUT_SECONDS)),
    }
    if (gpus := _gpus_of_node(job)) > 1:
        own[PROCESSES] = str(gpus)
    given = _own_variables(job)
    kept = {name: value for name, value in own.items() if name not in given}
    return {**kept, "RELAUNCH_NODES": nodes, "RELAUNCH_MASTER_PORT": port, "RELAUNCH_GROUP": group}


def _gpus_of_node(job: Job) -> int:
    """Return how many whole GPUs the container of each rank has: those that are asked for, 0 for parts of them."""
    accelerators = _accelerators(job, job.current_attempt.placement)
    if isinstance(accelerators, WholeGpus):
        return accelerators.count
    main = find_main(job.definition, job.revision)
    return main.gpu_count if accelerators is None and main is not None else 0


def _own_variables(job: Job) -> Collection[str]:
    """Return the names of the variables that the job itself sets, as far as they are known: not those of its image."""
    workload = job.definition.kubernetes
    main = find_main(job.definition, job.revision)
    return {
        *job.definition.environment,
        *(workload.own_variables if workload is not None else ()),
        *(main.torchrun_variables if main is not None else ()),
    }


def job_checkpoint_uri(job: Job) -> str:
    """Return the checkpoint prefix of all attempts of a job, which ends with a slash."""
    return f"{job.definition.checkpoint_uri}{job.job_id}/"
