"""`relaunch github`."""

import time
from typing import Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.deployment.change_set import ChangeSets, read_stack
from relaunch_cli.deployment.github_repository import find_repository_ids
from relaunch_cli.deployment.github_stacks import (
    WantedAccess,
    check_repository,
    deploy_access,
    find_github_stacks,
    plan_access,
    repository_of,
)
from relaunch_cli.deployment.interruption import is_wanted
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_cli.deployment.uninstallation import Uninstallation
from relaunch_cli.errors import CommandError
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.github import access_json, render_access, render_repositories
from relaunch_cli.views.screen import can_ask, print_json, print_note, print_result, print_text, progress

_Repository = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The repository on GitHub.")]


def add(  # noqa: PLR0913 - a command has the options it has
    repository: _Repository,
    ref: Annotated[
        str, typer.Option(metavar="REF", help="The one branch or tag that is let in [default: refs/heads/main].")
    ] = "",
    environment: Annotated[
        str, typer.Option(metavar="NAME", help="Instead of a branch, the environment whose jobs are let in.")
    ] = "",
    images: Annotated[
        str, typer.Option(metavar="REPOSITORY", help="The ECR repository that its workflows may push images into.")
    ] = "",
    *,
    is_confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Deploy without a question.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Let workflows of a repository submit jobs, and its pull requests be planned, by two roles of its own.

    They are a small stack for each repository. Again, it changes what options name.
    """
    template = find_source().github_repository
    account = AwsAccount()
    wanted = WantedAccess(repository, ref, environment, images)
    with progress("looking at the account"):
        plan = plan_access(stack, wanted, account.client, find_repository_ids)
    for note in plan.notes:
        print_note(note)
    if not is_confirmed and not can_ask():
        raise RefusedError("nobody can be asked here, and nothing was deployed: add --yes to deploy without a question")

    def confirm(question: str) -> bool:
        return is_confirmed or is_wanted(question)

    change_sets = ChangeSets(account.client("cloudformation"), confirm, print_note)
    made = deploy_access(plan, template, account.client("iam"), change_sets)
    if as_json:
        print_json({**access_json(made), "notes": list(plan.notes)})
    else:
        print_result(render_access(made))


def list_(*, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the repositories that are let in, with their roles."""
    stacks = AwsAccount().client("cloudformation")
    training = read_stack(f"{stack}-training", stacks)
    has_own = training is not None and training.parameters.get("GitHubRepository")
    found = [*([training] if training is not None and has_own else []), *find_github_stacks(stack, stacks)]
    if as_json:
        print_json({"repositories": [access_json(each) for each in found]})
    else:
        print_result(render_repositories(found))


def remove(
    repository: _Repository,
    *,
    is_confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Let a repository in no more: its stack and both roles are deleted, and its jobs go on."""
    check_repository(repository)
    account = AwsAccount()
    found = find_github_stacks(stack, account.client("cloudformation"))
    gone = next((each for each in found if repository_of(each).lower() == repository.lower()), None)
    if gone is None:
        raise CommandError(
            f"{repository} has no stack of its own beside {stack!r}",
            "relaunch github list shows those that have; that of relaunch deploy --github is in the stack of trainings",
            exit_codes.NOT_FOUND,
        )
    if not is_confirmed and not can_ask():
        raise RefusedError(
            "nobody can be asked here, and nothing was removed: add --yes to remove it without a question"
        )
    if not (is_confirmed or is_wanted(f"Delete the stack {gone.name} with the roles of {repository}?")):
        raise RefusedError("nothing was removed", exit_codes.CANCELLED)
    Uninstallation(stack, account.client, print_note, time.sleep).delete([gone])
    if as_json:
        print_json({"removed": repository_of(gone), "stack": gone.name})
    else:
        print_text(f"{repository_of(gone)} is let in no more; what it started goes on")


group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Let in repositories on GitHub.")
group.command("list")(list_)
group.command()(add)
group.command()(remove)
