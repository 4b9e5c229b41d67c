"""What the errors mean that ECS reports of a task that did not start.

The names and texts are those of the source of the Amazon ECS agent (aws/amazon-ecs-agent, commit
8dfceca6cf380a83c3007349317566f2862f0673): agent/dockerclient/dockerapi/errors.go, agent/engine/errors.go,
ecs-agent/api/errors/errors.go for the names, and for the texts agent/engine, agent/api/task, agent/asm, agent/ssm and
agent/taskresource. The agent passes on the errors of Docker, containerd, runc, the NVIDIA container toolkit and of AWS
services as they are; "Amazon ECS stopped tasks error messages" has those that are seen most.

An error that is in neither table is not known: it may be the machine's, or the same on every machine.

A text reports a fault of a GPU by an Xid, the number that the NVIDIA driver gives an error: "Xid Errors" (NVIDIA
GPU Deployment and Management). Those of programs are the ones after which the device plugin of NVIDIA for Kubernetes
takes a GPU for healthy (internal/rm/health.go, xidsToSkip).
"""

import re
from collections.abc import Mapping

from relaunch.core.launches.launch import ReportedCause

# They are compiled when a task did not start, which takes 20 ms.
# The first pattern that is found decides. None of them repeats what another repeats, so that each reads a text once.
_BY_TEXT: tuple[tuple[ReportedCause, str], ...] = (
    # The images of these machines have a driver that is too old, whichever of them it is.
    (ReportedCause.STARTS_NOWHERE, r"unsatisfied condition: "),
    # First: the name of an image may have the words of any other error.
    (ReportedCause.STARTS_NOWHERE, r"(?i)manifest unknown|pull access denied"),
    # Executables and devices of the instance, which the container runtime and its hooks need.
    (
        ReportedCause.NODE_FAULT,
        (
            r"(?i)\bexec: \"?([^\"\s:]*/)?(nvidia-container|oci[-_]neuron|containerd-shim|runc\b)"
            r"|(?<![\w./-])nvidia-container-cli: "
            r"|nvml error|driver not loaded|could not select device driver|unknown runtime specified"
            r"|Runtime is not set for GPU|error gathering device information|no such device|unknown device"
            r"|no space left on device|read-only file system|input/output error|cannot allocate memory"
            r"|too many open files|device or resource busy|failed to register layer|layer does not exist"
            r"|Docker daemon|cni plugin invocation failed|network namespace|container resource provisioning"
            r"|startContainer: |get BridgeIP|bridge IP|(?<![\w./-])cgroup\b(?![-./:@]\w)|/sys/fs/cgroup"
            r"|port is already allocated|address already in use|is already in use by container"
            r"|non-autoprovisioned volume does not match|could not be autoprovisioned"
            r"|unable to (initialize envfile resource|create envfiles|create \w+ client)"
            r"|unable to create (config|socket) directory"
            r"|could not progress task's state"
        ),
    ),
    # What IAM, a key or the owner of a registry has to grant; a role that was made a moment ago may not be seen yet.
    (
        ReportedCause.START_REFUSED,
        (
            r"(?i)AccessDenied|is not authorized to perform|unable to assume|execution (role )?credentials"
            r"|no basic auth credentials|authorization token has expired|ExpiredToken|UnrecognizedClient"
            r"|InvalidClientTokenId|status ?code: 403|403 Forbidden|\bunauthorized: |ecr credentials: not found"
            r"|registry credentials: not found|registry auth data|ecr auth data|AuthorizationData (in|is nil)"
        ),
    ),
    # Images, by name, platform or permission. Only the first image of a line is looked at, so that a reason that names
    # it again and again is read once.
    (
        ReportedCause.STARTS_NOWHERE,
        (
            r"(?im)no matching manifest|^(?>.*?(image|manifest|CannotPull\w*)\b).* not found"
            r"|repository does not exist|requested access to the resource is denied"
            r"|RepositoryNotFound|invalid reference format|failed to find a repo digest|canonical reference"
            r"|image operating system|does not match the \w+ platform|exec format error|unsupported manifest"
        ),
    ),
    # The command, user, directory, mounts and limits of the task definition.
    (
        ReportedCause.STARTS_NOWHERE,
        (
            r"(?i)\bexec: |chdir to cwd|unable to find (user|group)|no matching entries in passwd"
            r"|mount a directory onto a file|invalid mount|bind source path does not exist|duplicate mount point"
            r"|invalid mode: |invalid volume|volume name is too short|invalid characters for a local volume"
            r"|mount path must be absolute|invalid IP address|conflicting options|minimum memory limit"
            r"|error setting rlimit|unknown capability|invalid ulimit|invalid environment variable"
            r"|volume configuration|unrecognized volume type|volume target not available|resolve volume mounts"
            r"|volume source container|must include a name|invalid link|for link |link target not available"
            r"|associat\w+ (multiple containers to )?GPU|dependencies cannot be resolved|container memory limit"
            r"|ordering dependency \[[^\]]{0,200}\] for target \[[^\]]{0,255}\] does not exist"
            r"|decode given (docker|host) config"
            r"|user needs to be specified|docker (exposed ports|port map)|only supported on Windows|network mode is not"
            r"|firelens (container|config|configuration)\b|specified for option|is specified but|log driver named"
            r"|unknown log opt|credentialspec|socket directory ownership"
            r"|autoprovision is set to false(?!.*timed out)"
        ),
    ),
    # Secrets, parameters, log groups and files that are not there, or do not hold what the task definition says.
    (
        ReportedCause.STARTS_NOWHERE,
        (
            r"(?i)ResourceNotFound|can't find the specified secret|did not contain json key|invalid (ssm )?parameters: "
            r"|ParameterNotFound|invalid ARN|could not find a secretsmanager secretID|missing secret value"
            r"|looking for beginning of|cannot unmarshal|unable to unmarshal|AuthorizationData is malformed"
            r"|empty secrets value|marked for deletion|pending deletion|KMSInvalidState|DisabledException"
            r"|log group does not exist|NoSuchBucket|NoSuchKey|specified (key|bucket) does not exist|invalid s3 arn"
            r"|bucket not found"
            r"|status ?code: 404|unable to parse bucket and key|invalid path: bucket|file system .{1,40} does not exist"
            r"|FileSystemNotFound|failed to resolve .{0,200}\.efs\.|Secrets? resource$"
        ),
    ),
    (
        ReportedCause.UNREACHABLE,
        (
            r"(?i)timed? ?out|deadline exceeded|connection (refused|reset)|unexpected EOF|: EOF"
            r"|Throttl|too ?many ?requests"
            r"|rate exceeded|RequestLimitExceeded|SlowDown|status ?code:? 5\d\d"
            r"|\b50[0234] (internal|bad|service|gateway)"
            r"|InternalS\w+Error|Service ?Unavailable|ServerException|temporary failure|server misbehaving"
            r"|request canceled|context canceled|network is unreachable|no route to host|empty response|inactivity time"
            r"|InternalServiceError|dependency on resources not resolved|failed to pull image manifest"
            # Where no table has the cause that follows.
            r"|unable to (initialize s3 client|download s3 config)"
        ),
    ),
)

NAMES: Mapping[str, ReportedCause | None] = {
    "CannotCreateContainerError": None,
    "CannotCreateContainerExecError": ReportedCause.NODE_FAULT,
    "CannotCreateVolumeError": None,
    "CannotDescribeContainerError": ReportedCause.NODE_FAULT,
    "CannotGetContainerTopError": ReportedCause.NODE_FAULT,
    "CannotGetDockerClientVersionError": ReportedCause.NODE_FAULT,
    "CannotGetDockerclientError": ReportedCause.NODE_FAULT,
    "CannotInspectContainerError": ReportedCause.NODE_FAULT,
    "CannotInspectContainerExecError": ReportedCause.NODE_FAULT,
    "CannotInspectVolumeError": ReportedCause.NODE_FAULT,
    "CannotListContainersError": ReportedCause.NODE_FAULT,
    "CannotListImagesError": ReportedCause.NODE_FAULT,
    "CannotListPluginsError": ReportedCause.NODE_FAULT,
    "CannotPullContainerAuthError": None,
    "CannotPullContainerError": None,
    "CannotPullECRContainerError": None,
    "CannotPullImageManifestError": None,
    "CannotRemoveContainerError": ReportedCause.NODE_FAULT,
    "CannotRemoveVolumeError": ReportedCause.NODE_FAULT,
    "CannotStartContainerError": None,
    "CannotStartContainerExecError": ReportedCause.NODE_FAULT,
    "CannotStopContainerError": ReportedCause.NODE_FAULT,
    "ContainerNetworkingError": ReportedCause.NODE_FAULT,
    "ContainerVanishedError": ReportedCause.NODE_FAULT,
    "DockerClientConfigError": ReportedCause.STARTS_NOWHERE,
    "DockerStateError": None,
    "DockerTimeoutError": ReportedCause.UNREACHABLE,
    "HostConfigError": ReportedCause.STARTS_NOWHERE,
    "ImpossibleStateTransitionError": ReportedCause.NODE_FAULT,
    "InvalidVolumeError": ReportedCause.STARTS_NOWHERE,
    "NoSuchContainerError": ReportedCause.NODE_FAULT,
    "ResourceInitializationError": None,
    "TaskDependencyError": ReportedCause.STARTS_NOWHERE,
    "TaskStateError": ReportedCause.NODE_FAULT,
    "TaskStoppedBeforePullBeginError": ReportedCause.NODE_FAULT,
    # Of containerd on Fargate and Managed Instances, whose agent is not published.
    "ContainerRuntimeError": ReportedCause.NODE_FAULT,
    "ContainerRuntimeTimeoutError": ReportedCause.UNREACHABLE,
}
"""What an error of a start means if its text does not tell; None if only the text can."""

_NAME = r"\b[A-Z]\w+Error\b"


def meaning_of(reason: str) -> ReportedCause | None:
    """Return what the error of a task that did not start means for the next start, None if it is not known.

    `STARTS_NOWHERE`: it is the same on every machine. `START_REFUSED`: on every machine, until somebody grants
    something. `NODE_FAULT`: another machine may not have it. `UNREACHABLE`: it may be over soon.
    """
    by_text = next((cause for cause, pattern in _BY_TEXT if re.search(pattern, reason)), None)
    by_name = (NAMES.get(each) for each in re.findall(_NAME, reason))
    return by_text or next(filter(None, by_name), None)


_XIDS_OF_PROGRAMS = frozenset({13, 31, 43, 45, 68, 109})
# "NVRM: Xid (PCI:0000:00:1e): 79, pid=…", "Xid 48", "Xid: 94".
_XID = r"(?i)\bXid\b ?(?:\([^)]{0,40}\))?[: ]{0,3}(?P<number>[0-9]{1,4})\b"


def tells_gpu_fault(text: str) -> bool:
    """Return whether the text has an Xid that is not one of programs."""
    return any(int(each["number"]) not in _XIDS_OF_PROGRAMS for each in re.finditer(_XID, text))
