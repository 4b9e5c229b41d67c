"""The account's resources beside the application: buckets, task role, image, log group."""

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress

from relaunch_local.stack.emulator import ACCOUNT, REGION, Emulator

DATASETS = "relaunch-datasets"
CHECKPOINTS = "relaunch-checkpoints"
LOG_GROUP = "/relaunch/trainer"
REPOSITORY_NAME = "trainer"
TASK_ROLE = "trainer-task"
EXECUTION_ROLE = "trainer-execution"
ROLE_PATH = "/relaunch/"
_ROOT = f"arn:aws:iam::{ACCOUNT}:root"

# The maximum session duration of a role.
SESSION_SECONDS = 43_200


def provision_account(emulator: Emulator) -> dict[str, str]:
    """Create the resources that Relaunch expects in an account; return the task role's credentials as variables."""
    create_buckets(emulator)
    emulator.client("logs").create_log_group(logGroupName=LOG_GROUP)
    push_image(emulator)
    create_other_roles(emulator)
    return create_task_role(emulator)


def create_buckets(emulator: Emulator) -> None:
    """Create both buckets; the first sends its events to EventBridge."""
    s3 = emulator.client("s3")
    for bucket in (DATASETS, CHECKPOINTS):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_notification_configuration(
        Bucket=DATASETS, NotificationConfiguration={"EventBridgeConfiguration": {}}
    )


def push_image(emulator: Emulator, tag: str = "latest") -> str:
    """Put an image into the trainer's repository, which is created if missing; return its digest."""
    ecr = emulator.client("ecr")
    with suppress(ecr.exceptions.RepositoryAlreadyExistsException):
        ecr.create_repository(repositoryName=REPOSITORY_NAME)
    # An index names the platform itself; a single image's is in its configuration, which the emulator does not store.
    media_type = "application/vnd.oci.image.index.v1+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "manifests": [{"digest": f"sha256:{tag}", "platform": {"os": "linux", "architecture": "amd64"}}],
    }
    answer = ecr.put_image(
        repositoryName=REPOSITORY_NAME,
        imageTag=tag,
        imageManifest=json.dumps(manifest),
        imageManifestMediaType=media_type,
    )
    return str(answer["image"]["imageId"]["imageDigest"])


def create_other_roles(emulator: Emulator) -> None:
    """Create the roles that nothing assumes here, and that an account has in which trainings run."""
    iam = emulator.client("iam")
    for service in ("ecs", "spot"):
        iam.create_service_linked_role(AWSServiceName=f"{service}.amazonaws.com")
    trusted = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = {"Version": "2012-10-17", "Statement": [trusted]}
    iam.create_role(RoleName=EXECUTION_ROLE, Path=ROLE_PATH, AssumeRolePolicyDocument=policy(trust))


def create_task_role(emulator: Emulator) -> dict[str, str]:
    """Create the role that examples/README.md describes, and assume it as ECS does for a task; return its variables."""
    iam = emulator.client("iam")
    trusted = {"Service": "ecs-tasks.amazonaws.com", "AWS": _ROOT}
    trust = {"Statement": [{"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}]}
    role = iam.create_role(
        RoleName=TASK_ROLE, Path=ROLE_PATH, AssumeRolePolicyDocument=policy(trust), MaxSessionDuration=SESSION_SECONDS
    )
    objects = {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject"],
        "Resource": [f"arn:aws:s3:::{CHECKPOINTS}/*", f"arn:aws:s3:::{DATASETS}/*"],
    }
    buckets = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{CHECKPOINTS}"}
    iam.put_role_policy(
        RoleName=TASK_ROLE, PolicyName="train", PolicyDocument=policy({"Statement": [objects, buckets]})
    )
    return _assume(emulator, role["Role"]["Arn"])


def assume_as_ecs(emulator: Emulator, role_arn: str) -> dict[str, str]:
    """Return the credentials, as variables, that ECS gives to tasks with a role that only ECS may assume.

    The emulator lets nobody be a service: what is assumed is a role of the account with the same policies.
    """
    iam = emulator.client("iam")
    name = role_arn.rpartition("/")[2]
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": _ROOT}, "Action": "sts:AssumeRole"}]}
    # Another deployment has another role.
    copy = iam.create_role(
        RoleName=f"task-of-ecs-{secrets.token_hex(4)}",
        AssumeRolePolicyDocument=policy(trust),
        MaxSessionDuration=SESSION_SECONDS,
    )["Role"]
    for each in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=name, PolicyName=each)["PolicyDocument"]
        iam.put_role_policy(RoleName=copy["RoleName"], PolicyName=each, PolicyDocument=json.dumps(document))
    return _assume(emulator, copy["Arn"])


def assume_as_lambda(emulator: Emulator, role_arn: str) -> dict[str, str]:
    """Return the credentials, as variables, that Lambda gives to a function with this role.

    Lambda alone may assume it until now, and the emulator lets nobody be a service: the account may from now on.
    """
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": _ROOT}, "Action": "sts:AssumeRole"}]}
    emulator.client("iam").update_assume_role_policy(RoleName=role_arn.rpartition("/")[2], PolicyDocument=policy(trust))
    return _assume(emulator, role_arn)


def _assume(emulator: Emulator, role_arn: str) -> dict[str, str]:
    credentials = emulator.client("sts").assume_role(
        RoleArn=role_arn, RoleSessionName=TASK_ROLE, DurationSeconds=SESSION_SECONDS
    )["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
    }


def policy(content: Mapping[str, object]) -> str:
    """Return a policy document as JSON."""
    return json.dumps({"Version": "2012-10-17", **content})
