"""Reads what the registered job definitions name: roles, containers, buckets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from relaunch.adapters.aws.checkpoint_buckets import S3Buckets
from relaunch.core.checks import Check
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants, bucket_of
from relaunch.core.definitions.definition import JobDefinition, S3Trigger, image_repositories
from relaunch.core.revisions.revision import TaskDefinitionGrants, main_container
from relaunch.usecases.plan_jobs import Plan
from relaunch_cli.account_checks.buckets import CheckpointBucket, Notifications, check_checkpoint_bucket, check_uploads
from relaunch_cli.account_checks.placement import check_placement
from relaunch_cli.account_checks.repositories import check_repository
from relaunch_cli.account_checks.roles import check_task_role, read_policy, roles_of
from relaunch_cli.account_checks.stopping import MainProcess, check_sigterm, check_stop_timeout
from relaunch_cli.account_readers.calls import AccountCalls, known

# What S3 calls its first region (GetBucketLocation, API Reference).
_FIRST_REGION = "us-east-1"
_OLD_REGIONS = {"": _FIRST_REGION, "EU": "eu-west-1"}


def check_plans(plans: Iterable[Plan], grants: TaskDefinitionGrants, calls: AccountCalls) -> Iterator[Check]:
    """Check what jobs of these definitions run: whether they are placed, their roles, and how they are stopped."""
    for plan in plans:
        yield check_placement(plan, grants)
        if plan.revision is None:
            continue
        name = plan.definition.name
        for kind, arn in roles_of(plan.revision):
            yield known(
                f"{name}: {kind}",
                partial(_check_role, name, kind, arn, grants, calls),
            )
        # Without a checkpoint there is nothing to save, and an interruption starts the work over anyway.
        if plan.definition.checkpoint_uri is None:
            continue
        if plan.stop_timeout is not None:
            yield check_stop_timeout(name, plan.stop_timeout)
        yield known(f"{name}: SIGTERM", partial(_check_sigterm, plan, calls))


def _check_role(definition: str, kind: str, arn: str, grants: TaskDefinitionGrants, calls: AccountCalls) -> Check:
    found = calls.call("iam", "get_role", "NoSuchEntity", RoleName=arn.rpartition("/")[2])
    # A role of the same name under another path is another role.
    role = found["Role"] if found and found["Role"]["Arn"] == arn else None
    trust = read_policy(role.get("AssumeRolePolicyDocument")) if role else None
    return check_task_role(definition, kind, arn, grants, trust)


def _check_sigterm(plan: Plan, calls: AccountCalls) -> Check:
    definition = plan.definition
    revision = plan.revision
    main = main_container(definition, revision) if revision else None
    answer = calls.call("ecs", "describe_task_definition", taskDefinition=revision.arn if revision else "")
    containers = answer["taskDefinition"]["containerDefinitions"]
    container: Mapping[str, Any] = next((each for each in containers if each["name"] == main), {})
    process = MainProcess(
        tuple(container.get("entryPoint", ())),
        definition.command or tuple(container.get("command", ())),
        has_init=bool(container.get("linuxParameters", {}).get("initProcessEnabled")),
    )
    return check_sigterm(definition.name, process)


def check_checkpoint_buckets(
    definitions: Iterable[JobDefinition],
    region: str,
    grants: CheckpointGrants,
    calls: AccountCalls,
) -> Iterator[Check]:
    """Check the buckets on S3 that definitions save to."""
    uris = (each.checkpoint_uri or "" for each in definitions)
    for name in sorted({bucket_of(uri) for uri in uris if uri.startswith("s3://")}):
        yield known(
            f"checkpoint bucket {name}",
            partial(_check_bucket, name, region, grants, calls),
        )


def _check_bucket(name: str, region: str, grants: CheckpointGrants, calls: AccountCalls) -> Check:
    return check_checkpoint_bucket(_read_bucket(name, calls), region, grants)


def _read_bucket(name: str, calls: AccountCalls) -> CheckpointBucket:
    facts = S3Buckets(calls.client("s3")).describe(name)
    if not facts.exists:
        return CheckpointBucket(name, facts)
    # describe() leaves open what the caller may not see: the same calls say so here.
    calls.call("s3", "list_objects_v2", Bucket=name, MaxKeys=1)
    calls.call("s3", "get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError", Bucket=name)
    location = calls.call("s3", "get_bucket_location", Bucket=name).get("LocationConstraint") or ""
    return CheckpointBucket(name, facts, _OLD_REGIONS.get(location, location))


def check_watched_buckets(definitions: Sequence[JobDefinition], calls: AccountCalls) -> Iterator[Check]:
    """Check the buckets that triggers watch."""
    triggers = (trigger for each in definitions for trigger in each.triggers if isinstance(trigger, S3Trigger))
    for bucket in sorted({trigger.bucket for trigger in triggers}):
        yield known(f"uploads to {bucket}", partial(_check_watched, bucket, calls))


def check_repositories(definitions: Sequence[JobDefinition], calls: AccountCalls) -> Iterator[Check]:
    """Check the repositories whose images triggers watch or wait for."""
    for repository in sorted({name for each in definitions for name in image_repositories(each)}):
        yield known(f"images of {repository}", partial(_check_repository, repository, calls))


def _check_repository(repository: str, calls: AccountCalls) -> Check:
    missing = "RepositoryNotFoundException"
    answer = calls.call("ecr", "describe_repositories", missing, repositoryNames=[repository])
    return check_repository(repository, exists=answer is not None)


def _check_watched(bucket: str, calls: AccountCalls) -> Check:
    answer = calls.call("s3", "get_bucket_notification_configuration", "NoSuchBucket", Bucket=bucket)
    if answer is None:
        return check_uploads(bucket, None)
    kinds = ("TopicConfigurations", "QueueConfigurations", "LambdaFunctionConfigurations")
    has_others = any(answer.get(kind) for kind in kinds)
    return check_uploads(bucket, Notifications("EventBridgeConfiguration" in answer, has_others))
