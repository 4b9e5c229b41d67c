"""What the members of a container definition mean to Relaunch.

Source: ContainerDefinition (Amazon ECS API Reference), and the pages it links.
"""

from relaunch.core.task_definitions.member import (
    FOR_SERVICES,
    NEEDED_TO_START,
    NOT_ESSENTIAL,
    SEEN_BY_PROGRAM,
    Found,
    Member,
    harmless,
    is_given,
    read,
    refused,
    warned,
)

_LEFT_TO_THE_PROGRAM = (
    "entryPoint[]",
    "command[]",
    "environment[].name",
    "environment[].value",
    "environmentFiles[].value",
    "environmentFiles[].type",
    "secrets[].name",
    "secrets[].valueFrom",
    "user",
    "workingDirectory",
    "hostname",
    "privileged",
    "readonlyRootFilesystem",
    "disableNetworking",
    "interactive",
    "pseudoTerminal",
    "dockerLabels",
    "dnsServers[]",
    "dnsSearchDomains[]",
    "extraHosts[].hostname",
    "extraHosts[].ipAddress",
    "links[]",
    "mountPoints[].sourceVolume",
    "mountPoints[].containerPath",
    "mountPoints[].readOnly",
    "volumesFrom[].sourceContainer",
    "volumesFrom[].readOnly",
    "ulimits[].name",
    "ulimits[].softLimit",
    "ulimits[].hardLimit",
    "systemControls[].namespace",
    "systemControls[].value",
    "linuxParameters.capabilities.add[]",
    "linuxParameters.capabilities.drop[]",
    "linuxParameters.devices[].containerPath",
    "linuxParameters.devices[].permissions[]",
    "linuxParameters.initProcessEnabled",
    "linuxParameters.tmpfs[].containerPath",
    "linuxParameters.tmpfs[].size",
    "linuxParameters.tmpfs[].mountOptions[]",
    "linuxParameters.maxSwap",
    "linuxParameters.swappiness",
)


def _in_containers(*names: str) -> tuple[str, ...]:
    return tuple(f"containerDefinitions[].{name}" for name in names)


def _has_other_essential(found: Found) -> bool:
    essential = [each for each in found.definition["containerDefinitions"] if each.get("essential", True)]
    return bool(found.value) and len(essential) > 1


def _restarts_essential(found: Found) -> bool:
    return bool(found.value) and bool(found.holder.get("essential", True))


def _is_elastic_inference(found: Found) -> bool:
    return bool(found.value == "InferenceAccelerator")


CONTAINER_MEMBERS: tuple[Member, ...] = (
    *read("`container` of the job definition names the main one.", *_in_containers("name")),
    *read(
        "It is pinned by its digest, and its platforms choose the processor of the machine.", *_in_containers("image")
    ),
    *read(
        "What ECS reserves without a size of the task: memoryReservation, or else memory.",
        *_in_containers("cpu", "memory", "memoryReservation"),
    ),
    *read(
        "Host ports of network modes bridge and host are kept apart, and those that ECS reserves are refused.",
        *_in_containers(*(f"portMappings[].{name}" for name in ("containerPort", "hostPort", "protocol"))),
    ),
    *read(
        "GPUs, parts and shares of one; NeuronDevice is for Managed Instances.",
        *_in_containers("resourceRequirements[].value", "resourceRequirements[].sharingStrategy.nvidiaMps.memory"),
    ),
    *refused(
        "Amazon Elastic Inference is no longer available",
        _is_elastic_inference,
        *_in_containers("resourceRequirements[].type"),
    ),
    *read(
        "Paths of Neuron devices choose machines that have them.", *_in_containers("linuxParameters.devices[].hostPath")
    ),
    *read("How long the program may save after SIGTERM.", *_in_containers("stopTimeout")),
    *read(
        "A driver that the agent of ECS's images does not register is an attribute that ECS requires of the instance.",
        *_in_containers("logConfiguration.logDriver"),
    ),
    *read(
        "SELinux and AppArmor options are attributes that ECS requires of the instance.",
        *_in_containers("dockerSecurityOptions[]"),
    ),
    *refused(
        "the agent would start an essential container again after it has ended, so that the job never ends: "
        "leave restarts to Relaunch",
        _restarts_essential,
        *_in_containers("restartPolicy.enabled"),
    ),
    *harmless(
        NOT_ESSENTIAL,
        "When a container that is not essential is started again.",
        *_in_containers("restartPolicy.ignoredExitCodes[]", "restartPolicy.restartAttemptPeriod"),
    ),
    *warned(
        "several containers are essential: when one of them ends, ECS stops the others",
        _has_other_essential,
        *_in_containers("essential"),
    ),
    *warned(
        "gMSA credentials need instances that are prepared for them, which machines of the stack's own are not",
        is_given,
        *_in_containers("credentialSpecs[]"),
    ),
    *harmless(
        SEEN_BY_PROGRAM, "How the program sees the machine; ECS passes it on.", *_in_containers(*_LEFT_TO_THE_PROGRAM)
    ),
    *harmless(
        SEEN_BY_PROGRAM,
        "What processes share: `plan` and `apply` note several GPUs without it, on which NCCL may not start.",
        *_in_containers("linuxParameters.sharedMemorySize"),
    ),
    *harmless(
        SEEN_BY_PROGRAM,
        "A limit on the program's use of the GPU: ECS places shares by their memory.",
        *_in_containers("resourceRequirements[].sharingStrategy.nvidiaMps.maxComputePercent"),
    ),
    *harmless(
        NEEDED_TO_START,
        "How the image is pulled; a pull that fails is told as such.",
        *_in_containers("repositoryCredentials.credentialsParameter", "versionConsistency"),
    ),
    *harmless(
        FOR_SERVICES,
        "For services, or chosen by ECS from the free ports.",
        *_in_containers(*(f"portMappings[].{name}" for name in ("name", "appProtocol", "containerPortRange"))),
    ),
    *harmless(
        NEEDED_TO_START,
        "The order in which containers start; a task that does not start is the target's to report.",
        *_in_containers("dependsOn[].containerName", "dependsOn[].condition", "startTimeout"),
    ),
    *harmless(
        FOR_SERVICES,
        "ECS replaces unhealthy tasks of services only; a standalone task runs on.",
        *_in_containers(
            *(f"healthCheck.{name}" for name in ("command[]", "interval", "timeout", "retries", "startPeriod"))
        ),
    ),
    *harmless(
        NEEDED_TO_START,
        "Where logs go; a driver that cannot start is an error of the start.",
        *_in_containers(
            "logConfiguration.options",
            "logConfiguration.secretOptions[].name",
            "logConfiguration.secretOptions[].valueFrom",
            "firelensConfiguration.type",
            "firelensConfiguration.options",
        ),
    ),
)
