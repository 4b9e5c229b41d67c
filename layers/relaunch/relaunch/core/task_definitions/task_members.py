"""What the members of a task definition mean to Relaunch, those of its containers apart.

Source: RegisterTaskDefinition (Amazon ECS API Reference), and the pages it links.
"""

from relaunch.core.task_definitions.member import (
    NEEDED_TO_START,
    SEEN_BY_PROGRAM,
    WITH_REFUSED,
    Found,
    Member,
    harmless,
    is_given,
    read,
    refused,
    warned,
)

EC2 = "EC2"
MANAGED_INSTANCES = "MANAGED_INSTANCES"
MAX_CONSTRAINTS = 9
"""RunTask takes ten placement constraints with those of the task definition, and Relaunch adds one."""


def _is_for_other_capacity(found: Found) -> bool:
    return not {EC2, MANAGED_INSTANCES} & set(found.definition["requiresCompatibilities"])


def _is_too_much(found: Found) -> bool:
    return found.value != "memberOf" or len(found.definition["placementConstraints"]) > MAX_CONSTRAINTS


def _is_windows(found: Found) -> bool:
    return bool(found.value) and found.value != "LINUX"


def _is_isolated(found: Found) -> bool:
    return bool(found.value) and found.value != "SHARED"


TASK_MEMBERS: tuple[Member, ...] = (
    *read("The job definition names it; a derived revision gets a family of its own.", "family"),
    *read("Roles must be under the stack's TaskRolePath.", "taskRoleArn", "executionRoleArn"),
    *read("awsvpc needs SubnetIds; bridge and host take ports of the machine.", "networkMode"),
    *read("The size of the task is what ECS reserves, whatever its containers say.", "cpu", "memory"),
    *read("It chooses the processor of the machine.", "runtimePlatform.cpuArchitecture"),
    *read("Offerings that cannot satisfy it are rejected.", "placementConstraints[].expression"),
    *refused(
        f"constraints of a task definition are of the type memberOf, and at most {MAX_CONSTRAINTS}: RunTask takes ten, "
        "and Relaunch adds one",
        _is_too_much,
        "placementConstraints[].type",
    ),
    *refused(
        "Relaunch runs tasks on EC2 instances and Managed Instances: register it for EC2 or MANAGED_INSTANCES",
        _is_for_other_capacity,
        "requiresCompatibilities[]",
    ),
    *refused("Relaunch runs Linux tasks only", _is_windows, "runtimePlatform.operatingSystemFamily"),
    *refused(
        "Amazon Elastic Inference is no longer available",
        is_given,
        "inferenceAccelerators[].deviceName",
        "inferenceAccelerators[].deviceType",
    ),
    *refused(
        "ECS isolates tasks so on Managed Instances alone, for which Relaunch does not ask",
        _is_isolated,
        "trustedExecutionConfiguration.isolationMode",
    ),
    *harmless(
        WITH_REFUSED,
        "Only an isolation mode that is refused has one.",
        "trustedExecutionConfiguration.attestationPolicy",
    ),
    *refused(
        "RunTask would need the volume's configuration, which Relaunch does not have: mount a file system instead, or "
        "ask for `disk` in the job definition",
        is_given,
        "volumes[].configuredAtLaunch",
    ),
    *refused(
        "file systems of FSx for Windows File Server are mounted on Windows instances only",
        is_given,
        "volumes[].fsxWindowsFileServerVolumeConfiguration.fileSystemId",
    ),
    *harmless(
        WITH_REFUSED,
        "Parts of a volume that is refused.",
        "volumes[].fsxWindowsFileServerVolumeConfiguration.rootDirectory",
        "volumes[].fsxWindowsFileServerVolumeConfiguration.authorizationConfig.credentialsParameter",
        "volumes[].fsxWindowsFileServerVolumeConfiguration.authorizationConfig.domain",
    ),
    *read(
        "A driver other than `local` is an attribute that ECS requires of the instance.",
        "volumes[].dockerVolumeConfiguration.driver",
    ),
    *warned(
        "the file system needs a mount target in the zone of every machine that the job may get, else its tasks do not "
        "start there",
        is_given,
        "volumes[].efsVolumeConfiguration.fileSystemId",
        "volumes[].s3filesVolumeConfiguration.fileSystemArn",
    ),
    *harmless(
        NEEDED_TO_START,
        "How a file system is mounted; a mount that fails is an error of the start.",
        *(
            f"volumes[].efsVolumeConfiguration.{name}"
            for name in (
                "rootDirectory",
                "transitEncryption",
                "transitEncryptionPort",
                "authorizationConfig.accessPointId",
                "authorizationConfig.iam",
            )
        ),
        *(
            f"volumes[].s3filesVolumeConfiguration.{name}"
            for name in ("rootDirectory", "transitEncryptionPort", "accessPointArn")
        ),
    ),
    *harmless(SEEN_BY_PROGRAM, "A name within the task definition.", "volumes[].name"),
    *harmless(
        NEEDED_TO_START,
        "A directory of the machine, which the next attempt does not find on another one.",
        "volumes[].host.sourcePath",
        *(f"volumes[].dockerVolumeConfiguration.{name}" for name in ("scope", "autoprovision", "driverOpts", "labels")),
    ),
    *warned(
        "it is for Fargate and has no effect on EC2: ask for `disk` in the job definition",
        is_given,
        "ephemeralStorage.sizeInGiB",
    ),
    *warned("AWS App Mesh ended on 30 September 2026: the proxy reaches nothing", is_given, "proxyConfiguration.type"),
    *harmless(
        NEEDED_TO_START,
        "Parts of a proxy that is warned of.",
        "proxyConfiguration.containerName",
        "proxyConfiguration.properties[].name",
        "proxyConfiguration.properties[].value",
    ),
    *harmless(SEEN_BY_PROGRAM, "Which processes and memory segments the containers see.", "pidMode", "ipcMode"),
    *harmless(
        SEEN_BY_PROGRAM,
        "Faults are injected by whoever asks for them, and end a task as any fault does.",
        "enableFaultInjection",
    ),
    *harmless(SEEN_BY_PROGRAM, "Metadata; derived revisions keep them.", "tags[].key", "tags[].value"),
)
