"""What `relaunch deploy` has made for trainings: the outputs of its stack, and those of the application."""

from dataclasses import dataclass, replace
from typing import Any

from relaunch_cli import exit_codes
from relaunch_cli.deployment.change_set import read_stack
from relaunch_cli.deployment.findings import github_stack_name, role_stack_name
from relaunch_cli.errors import CommandError

_GITHUB_PARAMETERS = ("GitHubRepository", "GitHubRef", "GitHubEnvironment")


@dataclass(frozen=True, slots=True)
class TrainingStack:
    """The names that a training needs; those of GitHub are empty if no repository is let in.

    `families` are the patterns of the families that jobs may run and operators may register in; `any` allows all.
    `has_host_access`: jobs may run task definitions that give a container its machine. `image_repository` is what
    the repository's workflows may push into, and `callers` are those that its definition is held to, empty for all.
    """

    region: str
    repository_name: str
    repository_uri: str
    log_group: str
    checkpoint_bucket: str
    data_bucket: str
    task_role_arn: str
    execution_role_arn: str
    families: tuple[str, ...]
    job_api_url: str
    webhook_url: str = ""
    takes_uploads: bool = True
    has_host_access: bool = False
    submit_role_arn: str = ""
    github_repository: str = ""
    github_ref: str = ""
    github_environment: str = ""
    plan_role_arn: str = ""
    plan_api_url: str = ""
    image_repository: str = ""
    callers: tuple[str, ...] = ()

    @property
    def family_prefix(self) -> str:
        """What the family of any training may begin with; empty where all are allowed, or some names alone."""
        return next((each.removesuffix("*") for each in self.families if each.endswith("*")), "")


def prefer_own_role(found: TrainingStack, stack: str, training: str, stacks: Any, *, is_wanted: bool) -> TrainingStack:
    """Return what a training needs with the role of its own, if `relaunch deploy --training` has made one.

    Raises:
        CommandError: there is none, and it `is_wanted`.
        ClientError, BotoCoreError: the call failed.
    """
    name = role_stack_name(stack, training)
    own = read_stack(name, stacks)
    role = own.outputs.get("TaskRoleArn", "") if own is not None else ""
    if role:
        return replace(found, task_role_arn=role)
    if is_wanted:
        option = "" if stack == "relaunch" else f" --stack {stack}"
        raise CommandError(
            f"there is no stack {name!r} with a role of {training}",
            f"relaunch deploy --training {training}{option}, then relaunch init again",
            exit_codes.NOT_FOUND,
        )
    return found


def prefer_own_access(found: TrainingStack, stack: str, repository: str, stacks: Any) -> TrainingStack:
    """Return what a training needs with the roles of its repository, if `relaunch github add` has made some.

    Its definition is held to its own role then: those of other repositories could start its jobs else.

    Raises:
        ClientError, BotoCoreError: the call failed.
    """
    own = read_stack(github_stack_name(stack, repository), stacks) if repository else None
    if own is None or not own.outputs.get("SubmitRoleArn"):
        return found
    name, ref, environment = (own.parameters.get(each, "") for each in _GITHUB_PARAMETERS)
    return replace(
        found,
        submit_role_arn=own.outputs["SubmitRoleArn"],
        plan_role_arn=own.outputs.get("PlanRoleArn", ""),
        github_repository=name,
        github_ref=ref,
        github_environment=environment,
        image_repository=own.parameters.get("ImageRepository", ""),
        callers=(own.outputs["SubmitRoleArn"],),
    )


def read_training_stack(stack: str, region: str, stacks: Any) -> TrainingStack:
    """Read the stacks of a deployment.

    Raises:
        CommandError: one of them is not there.
        ClientError, BotoCoreError: the call failed.
    """
    name = f"{stack}-training"
    application = read_stack(stack, stacks)
    training = read_stack(name, stacks)
    if application is None or not application.outputs:
        raise CommandError(
            f"there is no stack {stack!r} in {region}", "deploy it: relaunch deploy", exit_codes.NOT_FOUND
        )
    if training is None or not training.outputs:
        hint = (
            f"deploy it, naming what you have: relaunch deploy Training=on --stack {stack}; or write the files yourself"
        )
        raise CommandError(f"there is no stack {name!r}, which has what trainings need", hint, exit_codes.NOT_FOUND)
    outputs = training.outputs
    repository, ref, environment = (training.parameters.get(each, "") for each in _GITHUB_PARAMETERS)
    try:
        return TrainingStack(
            region=region,
            repository_name=outputs["RepositoryName"],
            repository_uri=outputs["RepositoryUri"],
            log_group=outputs["LogGroupName"],
            checkpoint_bucket=outputs["CheckpointBucketName"],
            data_bucket=outputs["DataBucketName"],
            task_role_arn=outputs["TaskRoleArn"],
            execution_role_arn=outputs["ExecutionRoleArn"],
            families=tuple(
                each.strip() for each in application.outputs.get("TaskDefinitionFamilies", "relaunch-*").split(",")
            ),
            job_api_url=application.outputs.get("JobApiUrl", ""),
            webhook_url=application.outputs.get("WebhookUrl", ""),
            takes_uploads=bool(application.outputs.get("UploadsQueueArn")),
            has_host_access=application.outputs.get("HostAccess") == "on",
            image_repository=outputs["RepositoryName"],
            submit_role_arn=outputs.get("SubmitRoleArn", ""),
            plan_role_arn=outputs.get("PlanRoleArn", ""),
            plan_api_url=application.outputs.get("PlanApiUrl", ""),
            github_repository=repository,
            github_ref=ref,
            github_environment=environment,
        )
    except KeyError as error:
        raise CommandError(f"the stack {name} has no output {error}: it is another one") from error
