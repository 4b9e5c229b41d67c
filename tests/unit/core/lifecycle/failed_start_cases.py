"""Golden cases of how a task stops that did not start."""

from unit.core.lifecycle.stop_cases import (
    EXITED,
    EXITED_REASON,
    Case,
    K,
    ago,
    exited,
    failed_to_start,
    never_placed,
    never_ran,
)

WAITED_IN_VAIN = (
    "CannotStartContainerError: dependency graph: failed to resolve container ordering dependency [{init SUCCESS}] for "
    "target [main] as dependency did not exit successfully."
)
UNKNOWN_ERROR = "CannotStartContainerError: the flux capacitor is empty"
FAILED_START_CASES = {
    # nowhere to run
    "no-instance-for-another-reason-of-ec2": never_placed(K.NO_CAPACITY, "UnfulfillableCapacity: Unable to fulfill"),
    "no-address-free": never_placed(K.NO_CAPACITY, "InsufficientFreeAddressesInSubnet: the subnet is full"),
    "no-instance-in-time": never_placed(K.NO_CAPACITY, "Timed out waiting for an instance"),
    "no-reason-and-no-instance": never_placed(K.NO_CAPACITY, ""),
    "stopped-by-somebody-without-an-instance": Case(K.CANCELLED, "UserInitiated", "not today", has_node=False),
    "role-without-an-instance": never_placed(
        K.START_REFUSED, "ECS was unable to assume the role 'arn:aws:iam::111122223333:role/trainer' that was provided"
    ),
    "image-without-an-instance": never_placed(K.NO_CAPACITY, "CannotPullContainerError: manifest unknown"),
    "registry-without-an-instance": never_placed(K.NO_CAPACITY, "CannotPullContainerError: i/o timeout"),
    "start-error-without-an-instance": never_placed(
        K.NO_CAPACITY, "ResourceInitializationError: it is not known of what"
    ),
    "another-stop-code-without-an-instance": Case(
        K.NO_CAPACITY, EXITED, "CannotPullContainerError: i/o timeout", {"main": None}, has_node=False
    ),
    "no-stop-code-without-an-instance": Case(K.NO_CAPACITY, "", "Unexpected EC2 error", has_node=False),
    "no-gpu-free": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: RESOURCE:GPU"),
    "no-memory-free": failed_to_start(K.NO_CAPACITY, "RESOURCE:MEMORY"),
    "agent-disconnected-at-placement": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: AGENT"),
    "attribute-missing": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: ATTRIBUTE"),
    "constraint-unsatisfied": failed_to_start(
        K.NO_CAPACITY, "TaskFailedToStart: MemberOf placement constraint unsatisfied."
    ),
    "no-active-instances": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: NO ACTIVE INSTANCES"),
    "empty-capacity-provider": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: EMPTY CAPACITY PROVIDER"),
    "insufficient-capacity-from-ec2": failed_to_start(K.NO_CAPACITY, "InsufficientInstanceCapacity: no spot capacity"),
    "failed-to-start-said-in-the-reason-only": Case(
        K.NO_CAPACITY, "", "TaskFailedToStart: RESOURCE:GPU", {"main": None}
    ),
    # image
    "cannot-pull": failed_to_start(
        K.IMAGE, "Task failed to start", reasons={"main": "CannotPullContainerError: i/o timeout"}
    ),
    "cannot-pull-image-manifest": failed_to_start(K.IMAGE, "CannotPullImageManifestError: ref trainer:latest"),
    "manifest-unknown": failed_to_start(K.STARTS_NOWHERE, "manifest for trainer:abc not found: manifest unknown"),
    "wrong-architecture": failed_to_start(
        K.STARTS_NOWHERE, "no matching manifest for linux/arm64/v8 in the manifest list"
    ),
    "image-not-found": failed_to_start(K.STARTS_NOWHERE, "image trainer:latest not found"),
    "cannot-pull-with-the-word-attribute-is-still-image": failed_to_start(
        K.IMAGE, "CannotPullContainerError: unknown attribute in the registry's answer"
    ),
    "sidecar-cannot-be-pulled": Case(
        K.STARTS_NOWHERE,
        "TaskFailedToStart",
        "Task failed to start",
        {"main": None, "log": None},
        {"log": "CannotPullContainerError: pull access denied"},
    ),
    "sidecar-that-was-never-pulled-explains-no-exit-code": exited(
        K.USER_ERROR, 1, reasons={"log": "CannotPullContainerError: pull access denied"}
    ),
    # neither image nor capacity
    "secrets-not-readable": failed_to_start(
        K.START_REFUSED, "ResourceInitializationError: unable to pull secrets or registry auth: AccessDenied"
    ),
    "docker-timed-out": failed_to_start(K.UNKNOWN, "DockerTimeoutError: Could not transition to started"),
    "failed-to-start-though-main-ended-with-0": Case(K.UNKNOWN, "TaskFailedToStart", "volume", {"main": 0}),
    "command-not-found": Case(
        K.USER_ERROR, "TaskFailedToStart", "CannotStartContainerError: exec: no such file", {"main": 127}
    ),
    # it had a machine and never ran there
    "driver-not-loaded": never_ran(
        K.NOT_STARTED,
        "CannotStartContainerError: Error response from daemon: error running hook: nvml error: driver not loaded",
    ),
    "no-space-left": never_ran(
        K.NOT_STARTED, "CannotPullContainerError: write /var/lib/docker: no space left on device"
    ),
    "registry-out-of-reach-of-the-machine": never_ran(K.NOT_STARTED, "CannotPullContainerError: i/o timeout"),
    "docker-timed-out-on-the-machine": never_ran(K.NOT_STARTED, "DockerTimeoutError: Could not transition to created"),
    "logs-out-of-reach-of-the-machine": never_ran(
        K.NOT_STARTED, "ResourceInitializationError: failed to validate logger args: i/o timeout"
    ),
    "network-interface-timed-out": never_ran(
        K.NOT_STARTED, "Timeout waiting for network interface provisioning to complete."
    ),
    "volume-timed-out": never_ran(K.NOT_STARTED, "CannotCreateVolumeError: mount.nfs4: Connection timed out"),
    "no-such-image-wherever-it-starts": never_ran(
        K.STARTS_NOWHERE, "CannotPullContainerError: failed to resolve ref trainer:abc: not found"
    ),
    "secrets-not-readable-wherever-it-starts": never_ran(
        K.START_REFUSED, "ResourceInitializationError: unable to pull secrets: AccessDeniedException"
    ),
    "no-such-command-wherever-it-starts": Case(
        K.STARTS_NOWHERE,
        "TaskFailedToStart",
        'CannotStartContainerError: exec: "trian": executable file not found in $PATH',
        {"main": 127},
        was_starting=True,
    ),
    "no-such-command-that-has-nvidia-in-its-name": never_ran(
        K.STARTS_NOWHERE, 'CannotStartContainerError: exec: "nvidia-smi": executable file not found in $PATH'
    ),
    "no-hook-of-the-runtime-on-the-machine": never_ran(
        K.NOT_STARTED,
        'CannotStartContainerError: OCI runtime create failed: exec: "nvidia-container-runtime-hook": executable file '
        "not found in $PATH: unknown",
    ),
    "no-neuron-hook-on-the-machine": never_ran(
        K.NOT_STARTED, 'CannotStartContainerError: exec: "/opt/aws/neuron/bin/oci_neuron_hook": no such file'
    ),
    "no-runtime-on-the-machine": never_ran(
        K.NOT_STARTED, 'CannotCreateContainerError: exec: "runc": executable file not found in $PATH'
    ),
    "no-shim-on-the-machine": never_ran(
        K.NOT_STARTED, 'CannotStartContainerError: exec: "containerd-shim-runc-v2": file does not exist'
    ),
    "no-such-log-group-wherever-it-starts": never_ran(
        K.STARTS_NOWHERE,
        "CannotStartContainerError: failed to initialize logging driver: ResourceNotFoundException: The specified log "
        "group does not exist.",
    ),
    "no-such-secret-that-the-agent-tells-without-a-name": never_ran(
        K.STARTS_NOWHERE,
        "Fetching secret data from AWS Secrets Manager in region us-east-1: secret x: ResourceNotFoundException: "
        "Secrets Manager can't find the specified secret.",
    ),
    "an-error-that-nobody-knows": never_ran(K.UNKNOWN_START, UNKNOWN_ERROR),
    "an-error-that-nobody-knows-as-its-host-ended": never_ran(K.HOST_LOST, UNKNOWN_ERROR, host_ended_at=ago(5)),
    "an-error-that-nobody-knows-as-its-host-ended-after-a-warning": never_ran(
        K.INTERRUPTION, UNKNOWN_ERROR, host_ended_at=ago(5), warned_at=ago(125)
    ),
    "an-error-that-nobody-knows-before-its-host-ended": never_ran(
        K.UNKNOWN_START, UNKNOWN_ERROR, host_ended_at=ago(-11), warned_at=ago(20)
    ),
    "an-image-that-nobody-has-as-its-host-ended": never_ran(
        K.STARTS_NOWHERE, "CannotPullContainerError: manifest unknown", host_ended_at=ago(5)
    ),
    "what-it-waits-for-ended-with-its-host": Case(
        K.HOST_LOST,
        EXITED,
        EXITED_REASON,
        {"main": None, "init": 137},
        {"main": WAITED_IN_VAIN},
        was_starting=True,
        host_ended_at=ago(5),
    ),
    "no-error-at-all": never_ran(K.UNKNOWN_START, "Task failed to start"),
    "an-error-that-nobody-knows-of-a-container-that-another-one-waits-for": Case(
        K.STARTS_NOWHERE,
        EXITED,
        EXITED_REASON,
        {"main": 143, "init": None},
        {"main": WAITED_IN_VAIN, "init": "CannotPullContainerError: pull access denied"},
        was_starting=True,
    ),
    "init-container-failed": Case(
        K.USER_ERROR, EXITED, EXITED_REASON, {"main": 143, "init": 3}, {"main": WAITED_IN_VAIN}, was_starting=True
    ),
    "init-container-timed-out": Case(
        K.USER_ERROR,
        EXITED,
        EXITED_REASON,
        {"main": 143, "init": None},
        {"main": WAITED_IN_VAIN.replace("as dependency did not exit successfully", "has timed out")},
        was_starting=True,
    ),
    **{
        f"{error}-with-another-stop-code": Case(
            K.NOT_STARTED, EXITED, EXITED_REASON, {"main": None}, {"main": f"{error}: i/o timeout"}, was_starting=True
        )
        for error in (
            "CannotStartContainerError",
            "CannotCreateContainerError",
            "CannotPullContainerError",
            "CannotInspectContainerError",
            "ResourceInitializationError",
            "DockerTimeoutError",
            "ContainerRuntimeError",
            "ContainerRuntimeTimeoutError",
        )
    },
    "start-error-without-a-stop-code": Case(
        K.NOT_STARTED, "", "DockerTimeoutError: Could not transition to created", {"main": None}, was_starting=True
    ),
    "start-error-of-a-task-that-ran": Case(K.UNKNOWN, EXITED, "CannotStartContainerError: restarted", {"main": None}),
    "no-such-image-with-another-stop-code": Case(
        K.STARTS_NOWHERE, EXITED, "CannotPullContainerError: pull access denied", {"main": None}, was_starting=True
    ),
    "start-that-somebody-stopped": Case(
        K.CANCELLED,
        "UserInitiated",
        "Task stopped by user",
        {"main": None},
        {"main": "CannotStartContainerError: context canceled"},
        was_starting=True,
    ),
    "no-gpu-free-on-the-machine": never_ran(K.NO_CAPACITY, "RESOURCE:GPU"),
}
