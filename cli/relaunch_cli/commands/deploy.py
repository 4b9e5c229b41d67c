"""`relaunch deploy`."""

from pathlib import Path
from typing import Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.deployment.application import SamDeploy
from relaunch_cli.deployment.deployment import Deployment, survey
from relaunch_cli.deployment.function_environment import check_environments, expected_values
from relaunch_cli.deployment.github_repository import find_repository_ids
from relaunch_cli.deployment.interruption import is_wanted, says_how_to_go_on
from relaunch_cli.deployment.launch_policies import check_launch_policies
from relaunch_cli.deployment.named_parameters import read_changes, read_named
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_cli.node_quotas import missing_for_nodes
from relaunch_cli.options import Json, Stack
from relaunch_cli.views.deployment import render_end, render_survey, survey_json
from relaunch_cli.views.screen import can_ask, print_json, print_note, print_result, progress

_YES_HINT = "add --yes to deploy without a question, or --dry-run to see what would be made"


def deploy(  # noqa: PLR0913 - a command has the options it has
    parameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="Parameters of the stacks (docs/deploy.md lists them)."),
    ] = None,
    github: Annotated[
        str, typer.Option(metavar="OWNER/NAME", help="Let workflows of this repository push images and submit jobs.")
    ] = "",
    trainings: Annotated[
        list[str] | None,
        typer.Option(
            "--training", metavar="NAME", help="Make a role for this training alone; may be repeated, and is kept."
        ),
    ] = None,
    *,
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be made, and make nothing.")] = False,
    is_confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Deploy without a question.")] = False,
    source: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The clone of Relaunch to deploy [default: this command's].")
    ] = None,
    as_json: Json = False,
    stack: Stack = "relaunch",
) -> None:
    """Deploy Relaunch: what trainings need, what machines are launched with, and the application.

    It shows what it will make and what that costs while nothing is trained, asks, and shows its progress. What exists
    can be named, such as ClusterName=training, VpcId=vpc-0abc or CheckpointBucket=acme-checkpoints. Again, it updates.
    """
    clone = find_source(source)
    account = AwsAccount()
    given = read_named([*(parameters or ()), *([f"GitHubRepository={github}"] if github else [])], clone)
    with progress("looking at the account"):
        plan = survey(stack, given, account, find_repository_ids, trainings or ())
        values = expected_values(plan)
        check_environments(clone.application, values)
        check_launch_policies(plan.stack, values)
    changes = read_changes(plan, clone)
    if not as_json:
        print_result(render_survey(plan, changes))
    if is_dry_run:
        if as_json:
            print_json(survey_json(plan, changes, is_deployed=False))
        return
    if not is_confirmed and not can_ask():
        raise RefusedError(f"nobody can be asked here, and nothing was deployed: {_YES_HINT}")

    def confirm(question: str) -> bool:
        return is_confirmed or typer.confirm(question, err=True)

    if not (is_confirmed or is_wanted(f"Deploy {stack}?")):
        raise RefusedError("nothing was deployed", exit_codes.CANCELLED)
    sam = SamDeploy(clone, account.region, print_note)
    with says_how_to_go_on(print_note):
        requests = Deployment(account, clone, sam, confirm, print_note, is_confirmed).run(plan)
    for_nodes = () if plan.is_new else missing_for_nodes(lambda: AwsConnection(stack).deps, plan.quotas)
    if as_json:
        print_json(survey_json(plan, changes, is_deployed=True, requests=requests, for_nodes=for_nodes))
    else:
        print_result(render_end(plan, requests, for_nodes))
