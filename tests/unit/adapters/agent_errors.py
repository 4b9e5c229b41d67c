"""The errors of the Amazon ECS agent, taken from its source (aws/amazon-ecs-agent, 8dfceca6).

`NAMES` are what the methods `ErrorName` return, with that of `TaskStateError`. `TEXTS` are its format strings as they
come out, by what they mean for the next start: those of errors that become the reason of a task or of a container that
did not start. `FOREIGN` are texts of what it passes on: Docker, runc, containerd, the NVIDIA container toolkit, AWS.
"""

from collections.abc import Mapping

from relaunch.core.launches.launch import ReportedCause as C

NAMES = [
    "CannotCreateContainerError",
    "CannotCreateContainerExecError",
    "CannotCreateVolumeError",
    "CannotDescribeContainerError",
    "CannotGetContainerTopError",
    "CannotGetDockerClientVersionError",
    "CannotGetDockerclientError",
    "CannotInspectContainerError",
    "CannotInspectContainerExecError",
    "CannotInspectVolumeError",
    "CannotListContainersError",
    "CannotListImagesError",
    "CannotListPluginsError",
    "CannotPullContainerAuthError",
    "CannotPullContainerError",
    "CannotPullECRContainerError",
    "CannotPullImageManifestError",
    "CannotRemoveContainerError",
    "CannotRemoveVolumeError",
    "CannotStartContainerError",
    "CannotStartContainerExecError",
    "CannotStopContainerError",
    "ContainerNetworkingError",
    "ContainerVanishedError",
    "DockerClientConfigError",
    "DockerStateError",
    "DockerTimeoutError",
    "HostConfigError",
    "ImpossibleStateTransitionError",
    "InvalidVolumeError",
    "NoSuchContainerError",
    "OutOfMemoryError",
    "ResourceInitializationError",
    "TaskDependencyError",
    "TaskStateError",
    "TaskStoppedBeforePullBeginError",
]

NO_START_ERRORS = {"OutOfMemoryError"}
"""What a container that ran has too."""

TEXTS: Mapping[C, list[str]] = {
    C.STARTS_NOWHERE: [
        "fetching secret data from AWS Secrets Manager in region us-east-1: secret train/key: "
        "ResourceNotFoundException: Secrets Manager can't find the specified secret.",
        "retrieved secret from Secrets Manager did not contain json key token",
        "fetching secret data from SSM Parameter Store in us-east-1: invalid parameters: /train/key",
        "could not find a secretsmanager secretID from value arn:aws:x",
        "an invalid ARN format for the AWS Secrets Manager secret was specified. Specify a valid ARN and try again.",
        "asm fetching authorization data: empty secrets value",
        "asm fetching authorization data: unable to unmarshal secret value, invalid schema",
        "asm fetching username: AuthorizationData is malformed, empty field",
        "asm fetching password: AuthorizationData is malformed, empty field",
        "HostConfigError: missing secret value for secret TOKEN",
        "unable to parse bucket and key from s3 ARN specified in environmentFile arn:aws:s3:::b, error: x",
        "invalid s3 arn: arn:aws:s3:::b",
        'invalid path: bucket "b" key "../k" escapes envfile resource directory',
        "unable to download env file with key k from bucket b, error: operation error S3: GetObject, https response "
        "error StatusCode: 404, RequestID: 1, NoSuchKey: ",
        "CannotPullContainerError: failed to find a repo digest matching 'acme/trainer'",
        "failed to prepare a canonical reference with image 'x' and digest 'sha256:1': invalid",
        "could not associate multiple containers to GPU GPU-1",
        "could not find container with name main for associating GPU GPU-1",
        "Task dependencies cannot be resolved, taskArn: arn:aws:ecs:us-east-1:1:task/c/1",
        "dependency graph: container ordering dependency [{init SUCCESS}] for target [main] does not exist.",
        "task volume: volume configuration does not match the type 'docker'",
        "task volume: volume configuration does not match the type 'efs'",
        "task volume: volume configuration does not match the type 's3files'",
        "invalid Volume; must include a name",
        'unrecognized volume type: "ftp"',
        "invalid volume: empty volume configuration",
        "invalid volume: empty s3files volume configuration",
        "HostConfigError: Invalid volume referenced: data",
        "HostConfigError: Volume target not available: log",
        "HostConfigError: Unable to resolve volume mounts; invalid path: data /a; /b -> /c",
        "could not find volume source container with name log",
        "invalid link format",
        "HostConfigError: Invalid link format",
        "could not find container for link log",
        "HostConfigError: Link target not available: log",
        "HostConfigError: Unable to decode given host config: json: x",
        "HostConfigError: error retrieving docker port map: x",
        "HostConfigError: encounter invalid firelens configuration type syslog",
        "DockerClientConfigError: Unable decode given docker config: json: x",
        "DockerClientConfigError: error resolving docker exposed ports for container: x",
        "DockerClientConfigError: task secret data: unable to fetch SSM Secrets resource",
        "DockerClientConfigError: task secret data: unable to fetch ASM Secrets resource",
        "DockerClientConfigError: unable to fetch task resource credentialspec",
        "DockerClientConfigError: unable to fetch valid credentialspec mapping",
        "unable to decode given docker config: json: x",
        "user needs to be specified for proxy container",
        "firelens container config doesn't exist",
        "unable to initialize firelens resource because there's no firelens container",
        "unable to add firelens container dependency because there's no firelens container",
        "unable to add firelens container dependency",
        "unsupported firelens config type syslog",
        "invalid firelens configuration type: syslog",
        "invalid value x is specified for option config-file-type",
        "option config-file-type is specified but config-file-value is not specified",
        "unable to apply log options of container main to firelens config: x",
        "task memory spec builder: container memory limit(9) greater than task memory limit(8)",
        "task with FSx for Windows File Server volumes is only supported on Windows container instance",
        "task config: task network mode is not AWSVPC",
        "initialize volume: volume detection failed, volume 'data' does not exist and autoprovision is set to false: "
        "Error response from daemon: get data: no such volume",
        "unable to initialize resource directory /var/lib/ecs/data/firelens/1: unable to set socket directory "
        'ownership: unable to determine the user ID: strconv.Atoi: parsing "trainer": invalid syntax',
        "unable to download firelens s3 config file: unable to initialize s3 client for bucket b: bucket not found",
        "unable to download firelens s3 config file: unable to parse bucket and key from s3 arn: x",
        "unable to download firelens s3 config file: unable to download s3 config k from bucket b: operation error S3: "
        "GetObject, https response error StatusCode: 404, RequestID: 1, NoSuchKey: ",
        "unable to generate firelens config file: x",
    ],
    C.START_REFUSED: [
        "fetching secret data from AWS Secrets Manager in region us-east-1: secret train/key: AccessDeniedException: "
        "User: arn:aws:sts::1:assumed-role/x/1 is not authorized to perform: secretsmanager:GetSecretValue",
        "ASM secret resource: unable to find execution role credentials",
        "ssm secret resource: unable to find execution role credentials",
        "asm resource: unable to find execution role credentials",
        "environment file resource: unable to find execution role credentials",
        "unable to get execution role credentials",
        "HostConfigError: No execution credentials set for the task",
        "HostConfigError: Unable to get execution role credentials for task",
        "dependency graph: execution role credentials not available",
        "unable to download env file with key k from bucket b, error: operation error S3: GetObject, https response "
        "error StatusCode: 403, api error AccessDenied: Access Denied",
        "CannotPullContainerError: The task can\u2019t pull the image. Check that the role has the permissions to pull "
        "images from the registry. denied: User: arn:aws:sts::1:assumed-role/x/1 is not authorized to perform: "
        "ecr:BatchGetImage on resource: arn:aws:ecr:us-east-1:1:repository/trainer",
        "CannotPullECRContainerError: engine ecr credentials: not found",
        "CannotPullContainerAuthError: engine docker private registry credentials: not found",
        "CannotPullContainerAuthError: dockerauth: missing container's registry auth data",
        "CannotPullECRContainerError: dockerauth: missing container's ecr auth data",
        "CannotPullECRContainerError: ecr auth: missing AuthorizationData in ECR response for trainer",
        "CannotPullECRContainerError: ecr auth: AuthorizationData is nil for trainer",
        "unable to download firelens s3 config file: unable to get execution role credentials",
        "unable to initialize s3 client for bucket b, error: operation error S3: HeadBucket, https response error "
        "StatusCode: 403, RequestID: 1, api error Forbidden: Forbidden",
    ],
    C.NODE_FAULT: [
        "HostConfigError: Runtime is not set for GPU containers",
        "DockerClientConfigError: unable to get BridgeIP for task in bridge mode",
        "CannotCreateContainerError: failed to create container - container uses awsfirelens log driver but we failed "
        "to resolve Firelens bridge IP: x",
        "Bridge IP not available to use for firelens",
        "ContainerNetworkingError: startContainer: cni plugin invocation failed: x",
        "ContainerNetworkingError: container resource provisioning: failed to setup network namespace: x",
        "ContainerNetworkingError: container resource provisioning: empty result from network namespace setup",
        "engine: failed to build cni configuration from the task due to invalid container network namespace",
        "cgroup resource: setup cgroup: unable to create cgroup taskARN=x cgroupPath=y cgroupV2=true err=z",
        "cgroup resource: setup cgroup: unable to set use hierarchy flag taskARN=x cgroupPath=y cgroupV2=false err=z",
        "unable to initialize envfile resource directory, error: x",
        "unable to create envfiles directory with bucket b: x",
        "unable to initialize resource directory /var/lib/ecs/data/firelens/1: unable to create config directory: x",
        "unable to initialize resource directory /var/lib/ecs/data/firelens/1: unable to create socket directory: x",
        "unable to create ASM client: x",
        "unable to create SSM client in us-east-1: x",
        "intialize volume: non-autoprovisioned volume does not match existing volume labels: existing: x, expected: y",
        "initialize volume: non-autoprovisioned volume does not match existing volume options: existing: x, "
        "expected: y",
        "volume [data] : task scoped volume could not be autoprovisioned",
        "TaskStateError: Agent could not progress task's state to stopped",
        "ContainerVanishedError: No container matching saved ID found",
        "NoSuchContainerError: Container not found: 0a1b",
        "ImpossibleStateTransitionError: Cannot transition to CREATED",
        "TaskStoppedBeforePullBeginError: Task stopped before image pull could begin for task: arn:aws:ecs:x",
    ],
    C.UNREACHABLE: [
        "DockerTimeoutError: Could not transition to created; timed out after waiting 4m0s",
        "CannotPullContainerError: inactivity time exceeded timeout while pulling image",
        "CannotPullImageManifestError: failed to pull image manifest",
        "CannotPullContainerError: The task can\u2019t pull the image. Check your network configuration. "
        "net/http: request canceled while waiting for connection",
        "initialize volume: volume detection failed, volume 'data' does not exist and autoprovision is set to false: "
        "Could not transition to inspecting volume; timed out after waiting 30s",
        "unable to initialize s3 client for bucket b, error: x",
        "unable to download firelens s3 config file: unable to initialize s3 client for bucket b: x",
        "unable to download firelens s3 config file: unable to download s3 config k from bucket b: x",
        "asm fetching authorization data: empty response",
        "fetching secret data from SSM Parameter Store in us-east-1: empty response",
    ],
}

FOREIGN: Mapping[C, list[str]] = {
    C.STARTS_NOWHERE: [
        "CannotStartContainerError: Error response from daemon: failed to initialize logging driver: failed to create "
        "Cloudwatch log stream: ResourceNotFoundException: The specified log group does not exist.",
        "ResourceInitializationError: unable to pull secrets or registry auth: unable to retrieve secret from asm: "
        "ResourceNotFoundException: Secrets Manager can't find the specified secret.",
        "ResourceInitializationError: unable to pull secrets or registry auth: unable to retrieve secrets from ssm: "
        "invalid ssm parameters: /train/key",
        "fetching secret data from AWS Secrets Manager in region us-east-1: invalid character 'h' looking for "
        "beginning of value",
        "fetching secret data from AWS Secrets Manager in region us-east-1: secret x: InvalidRequestException: You "
        "can't perform this operation on the secret because it was marked for deletion.",
        "CannotPullContainerError: manifest for acme/trainer:1 not found: manifest unknown",
        "CannotPullContainerError: image Manifest does not contain descriptor: no matching manifest for linux/arm64/v8",
        "CannotPullContainerError: failed to resolve ref acme/trainer:1: not found",
        "CannotPullContainerError: pull access denied for acme/trainer, repository does not exist or may require "
        "'docker login'",
        "CannotPullContainerError: The task can\u2019t pull the image. Check whether the image "
        "exists. denied: requested "
        "access to the resource is denied",
        "CannotPullContainerError: manifest for acme/cgroup-bench:1 not found: manifest unknown",
        "CannotPullContainerError: pull access denied for acme/nvidia-container-cli, repository does not exist",
        "CannotPullContainerError: failed to resolve ref acme/unknown-device:1: not found",
        'CannotStartContainerError: exec: "trunc": executable file not found in $PATH: unknown',
        'CannotStartContainerError: exec: "/opt/cgroup/train": executable file not found in $PATH: unknown',
        "CannotPullContainerError: invalid reference format",
        'CannotPullContainerError: image operating system "windows" cannot be used on this platform',
        'CannotStartContainerError: exec: "trian": executable file not found in $PATH: unknown',
        'CannotStartContainerError: exec: "/train.sh": permission denied: unknown',
        "CannotStartContainerError: exec user process caused: exec format error",
        "CannotStartContainerError: runc create failed: unable to start container process: error during container "
        'init: chdir to cwd ("/app") set in config.json failed: no such file or directory',
        "CannotStartContainerError: unable to find user trainer: no matching entries in passwd file",
        'CannotStartContainerError: error mounting "/a" to rootfs: Are you trying to mount a directory onto a file',
        'CannotCreateContainerError: invalid mount config for type "bind": bind source path does not exist: /data',
        "CannotCreateContainerError: Duplicate mount point: /data",
        "CannotCreateContainerError: invalid volume specification: 'a:b'",
        "CannotCreateContainerError: Minimum memory limit allowed is 6MB",
        "CannotCreateContainerError: logger: no log driver named 'x' is registered",
        "CannotCreateContainerError: unknown log opt 'x' for awslogs log driver",
        "CannotStartContainerError: error setting rlimits for ready process: error setting rlimit type 8: operation "
        "not permitted",
        "CannotStartContainerError: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8",
        "CannotCreateVolumeError: mount.efs: Failed to resolve fs-0a1.efs.us-east-1.amazonaws.com",
    ],
    C.START_REFUSED: [
        "ECS was unable to assume the role 'arn:aws:iam::1:role/relaunch/trainer' that was provided for this task.",
        "CannotPullContainerError: no basic auth credentials",
        "CannotPullContainerError: unauthorized: authentication required",
        "CannotPullECRContainerError: denied: Your authorization token has expired. Reauthenticate and try again.",
        "ResourceInitializationError: unable to pull secrets or registry auth: AccessDeniedException: Access to KMS "
        "is not allowed",
        "CannotStartContainerError: failed to initialize logging driver: failed to create Cloudwatch log stream: "
        "AccessDeniedException: User: x is not authorized to perform: logs:CreateLogStream",
    ],
    C.NODE_FAULT: [
        "CannotStartContainerError: nvidia-container-cli: initialization error: nvml error: driver not loaded",
        'CannotStartContainerError: could not select device driver "" with capabilities: [[gpu]]',
        'CannotStartContainerError: exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
        'CannotStartContainerError: exec: "/opt/aws/neuron/bin/oci_neuron_hook": no such file',
        "CannotStartContainerError: runc create failed: mkdir /sys/fs/cgroup/devices/ecs/1: no such file or directory",
        'CannotCreateContainerError: exec: "/usr/bin/runc": executable file not found in $PATH',
        'CannotCreateContainerError: exec: "runc": executable file not found in $PATH',
        "CannotCreateContainerError: unknown runtime specified nvidia",
        'CannotStartContainerError: error gathering device information while adding custom device "/dev/neuron0"',
        "CannotPullContainerError: failed to register layer: write /usr/x: no space left on device",
        "CannotCreateContainerError: mkdir /var/lib/docker/overlay2/x: read-only file system",
        "CannotInspectContainerError: Cannot connect to the Docker daemon at unix:///var/run/docker.sock",
        "CannotStartContainerError: driver failed programming external connectivity: port is already allocated",
    ],
    C.UNREACHABLE: [
        "CannotPullContainerError: dial tcp 10.0.0.1:443: i/o timeout",
        "CannotPullContainerError: net/http: TLS handshake timeout",
        "CannotPullContainerError: toomanyrequests: You have reached your pull rate limit",
        "CannotPullECRContainerError: RequestError: send request failed: connection refused",
        "CannotPullContainerError: received unexpected HTTP status: 503 Service Unavailable",
        "fetching secret data from AWS Secrets Manager in region us-east-1: ThrottlingException: Rate exceeded",
        "fetching secret data from AWS Secrets Manager in region us-east-1: RequestCanceled: context deadline exceeded",
        "CannotCreateVolumeError: mount.nfs4: Connection timed out",
        "Timeout waiting for network interface provisioning to complete.",
    ],
}

UNKNOWN = [
    "CannotStartContainerError: Error response from daemon: the flux capacitor is empty",
    "CannotPullContainerError: dial tcp: lookup registry.acme.example: no such host",
    "ResourceInitializationError: something new",
    "something new",
    "",
]
