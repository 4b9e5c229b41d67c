"""What a removal leaves in the account, why, and how it is deleted by hand."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from relaunch_cli.deployment.account_roles import SERVICES, read_account_roles
from relaunch_cli.deployment.change_set import read_stack
from relaunch_cli.deployment.findings import AccountRoles, Kept, Stack

# The names that AWS gives them ("Using service-linked roles", ECS Developer Guide and EC2 User Guide).
_ROLES = dict(zip(SERVICES, ("AWSServiceRoleForECS", "AWSServiceRoleForEC2Spot"), strict=True))
SAM_STACK = "aws-sam-cli-managed-default"
"""The stack that SAM CLI makes for all applications of a region."""


def find_kept(found: Iterable[Stack], stack: str, clients: Callable[[str], Any]) -> Sequence[Kept]:
    """Look at what the account has once, and return what a removal of stacks leaves.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    roles = read_account_roles(clients("iam"), with_github=True)
    return kept_after(found, stack, roles, read_stack(SAM_STACK, clients("cloudformation")))


def kept_after(found: Iterable[Stack], stack: str, roles: AccountRoles, packages: Stack | None) -> Sequence[Kept]:
    """Return what a removal of stacks leaves; `packages` is the stack SAM_STACK, if there is one."""
    by_name = {each.name: each for each in found}
    kept: list[Kept] = []
    if application := by_name.get(stack):
        kept += _kept_of_application(application)
    if training := by_name.get(f"{stack}-training"):
        kept += _kept_of_training(training)
    kept += _kept_of_account(roles)
    if packages is not None:
        bucket = packages.outputs.get("SourceBucket", "")
        kept.append(
            Kept(
                f"bucket {bucket} of the stack {SAM_STACK}",
                "SAM CLI keeps packages of all its applications there, also of others",
                f"empty it in the console, then aws cloudformation delete-stack --stack-name {SAM_STACK}",
            )
        )
    command = "of aws ecs list-task-definitions, for each: aws ecs deregister-task-definition --task-definition ARN"
    return [*kept, Kept("task definitions", "they are yours, and cost nothing", command)]


def _kept_of_application(application: Stack) -> Iterable[Kept]:
    if application.parameters.get("TableDeletionPolicy", "Retain") == "Retain":
        table = application.outputs.get("TableName", "the jobs table")
        yield Kept(f"table {table}", "the history of all jobs", f"aws dynamodb delete-table --table-name {table}")
    if path := application.outputs.get("NoticesPath"):
        command = f"of aws ssm get-parameters-by-path --recursive --path {path}, for each: aws ssm delete-parameter"
        yield Kept(
            f"receivers of notices in {path}", "another deployment of this name uses them", f"{command} --name NAME"
        )


def _kept_of_account(roles: AccountRoles) -> Iterable[Kept]:
    """Yield what an account has once, by whomever it was made: nothing records that."""
    why = "the account has it once, others may use it, and it costs nothing"
    for service, name in _ROLES.items():
        if service not in roles.missing:
            yield Kept(f"service-linked role {name}", why, f"aws iam delete-service-linked-role --role-name {name}")
    if arn := roles.github_provider_arn:
        command = f"aws iam delete-open-id-connect-provider --open-id-connect-provider-arn {arn}"
        yield Kept("OIDC provider of GitHub", why, command)


def _kept_of_training(training: Stack) -> Iterable[Kept]:
    outputs = training.outputs
    parameters = training.parameters
    for output, parameter, what in (
        ("CheckpointBucketName", "CheckpointBucket", "checkpoints are your work"),
        ("DataBucketName", "DataBucket", "the data is yours"),
    ):
        name = outputs.get(output, "")
        # One that an earlier deployment made is named by the parameter.
        if not parameters.get(parameter) or name.startswith(f"{training.name}-New{parameter}-".lower()):
            # `aws s3 rb --force` leaves old versions, and fails on them.
            yield Kept(f"bucket {name}", what, f"empty it in the console, then aws s3api delete-bucket --bucket {name}")
    name = outputs.get("RepositoryName", "")
    is_adopted = name == f"{training.name.removesuffix('-training').lower()}/trainer"
    if parameters.get("ExistingRepository", "false") == "false" or is_adopted:
        command = f"aws ecr delete-repository --force --repository-name {name}"
        yield Kept(f"repository {name}", "images may be the only ones", command)
    if group := outputs.get("LogGroupName"):
        days = parameters.get("LogRetentionDays", "30")
        command = f"aws logs delete-log-group --log-group-name {group}"
        yield Kept(f"log group {group}", f"what trainings wrote, until it is {days} days old", command)
