"""`relaunch init`."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaunch.core.definitions.definition import GithubTrigger, S3Trigger
from relaunch_cli import exit_codes
from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.definition_files import parse_file
from relaunch_cli.deployment.source import find_source
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.loopback import is_loopback
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.repository_setup.file_changes import read_text
from relaunch_cli.repository_setup.findings import DEFINITION_FILE
from relaunch_cli.repository_setup.form import read_training
from relaunch_cli.repository_setup.git_repository import find_commit, find_repository
from relaunch_cli.repository_setup.github_webhook import Gh
from relaunch_cli.repository_setup.setup import Outside, Wanted, Watched, has_files, make, survey
from relaunch_cli.repository_setup.training import AcceleratorKind, name_of
from relaunch_cli.repository_setup.training_stack import prefer_own_access, prefer_own_role, read_training_stack
from relaunch_cli.repository_setup.webhook_secret import secret_of
from relaunch_cli.views.init import describe_next, render_setup, setup_json
from relaunch_cli.views.screen import can_ask, print_json, print_note, print_result, print_text, progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch_cli.repository_setup.findings import GitRepository, Setup

_ACTION = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._/-]+@[A-Za-z0-9._/-]+")
_NOTHING = "nothing was written"
_NOBODY = "--yes makes what is missing without a question, --dry-run shows it"


def init(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    name: Annotated[str | None, typer.Option(help="Name of the training [default: that of the repository].")] = None,
    gpu: Annotated[int | None, typer.Option(metavar="COUNT", help="It needs so many GPUs of a machine.")] = None,
    gpu_memory: Annotated[
        int | None, typer.Option(metavar="GIB", help="Least memory of each GPU, or that of the share.")
    ] = None,
    gpu_share: Annotated[int | None, typer.Option(metavar="PERCENT", help="It needs a share of one GPU.")] = None,
    neuron: Annotated[int | None, typer.Option(metavar="DEVICES", help="It needs Neuron devices (Trainium).")] = None,
    command: Annotated[str | None, typer.Option(help="What runs in the container [default: python train.py].")] = None,
    vcpus: Annotated[int | None, typer.Option(help="vCPUs that the container reserves.")] = None,
    memory: Annotated[int | None, typer.Option(metavar="GIB", help="Memory that the container reserves.")] = None,
    stop_timeout: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Time to save between SIGTERM and SIGKILL.")
    ] = None,
    duration: Annotated[str | None, typer.Option(help="Estimated duration, for example 2h.")] = None,
    base_image: Annotated[
        str | None,
        typer.Option(metavar="deep-learning-container|python", help="What a Dockerfile that is written begins with."),
    ] = None,
    uploads: Annotated[
        str | None, typer.Option(metavar="s3://BUCKET/PREFIX", help="Uploads that start jobs too.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(metavar="OWNER/NAME@COMMIT", help="The GitHub Action of Relaunch [default: that of this clone]."),
    ] = None,
    *,
    has_webhook: Annotated[
        bool, typer.Option("--webhook", help="Let GitHub's webhook tell of pushes; it is made by gh.")
    ] = False,
    is_mounting: Annotated[
        bool, typer.Option("--mount", help="The training mounts buckets by Mountpoint for Amazon S3.")
    ] = False,
    has_own_role: Annotated[
        bool, typer.Option("--own-role", help="Fail without a role of its own (relaunch deploy --training).")
    ] = False,
    overwrites: Annotated[
        bool, typer.Option("--overwrite", help="Write the files anew, also those that are there; shows what changes.")
    ] = False,
    is_dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be made, each line, and make nothing.")
    ] = False,
    is_confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Make it without a question.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Set up the repository of a training, in which you are.

    It writes relaunch.yaml, task-definition.json, a workflow that builds the image, and a Dockerfile if there is none,
    registers the task definition, lets EventBridge know of uploads, and applies relaunch.yaml. Files that are there are
    left as they are, without --overwrite: edit them, and run it again, and the account follows.
    """
    given = {
        "name": name,
        "count": gpu if gpu is not None else neuron,
        "kind": _kind(gpu, gpu_share, neuron),
        "gpu_memory_gib": gpu_memory,
        "compute_percent": gpu_share,
        "vcpus": vcpus,
        "memory_gib": memory,
        "command": command,
        "stop_timeout_seconds": stop_timeout,
        "duration": duration,
        "base_image": base_image,
        "uploads": uploads,
        "has_webhook": has_webhook or None,
        "is_mounting": is_mounting or None,
    }
    given = {key: value for key, value in given.items() if value is not None}
    asks = can_ask() and not is_confirmed and not is_dry_run and not as_json
    want = partial(_wanted, given=given, action=action, asks=asks, overwrites=overwrites)
    setup, outside = _survey(stack, want, has_own_role=has_own_role)
    is_local = is_loopback(str(outside.client("ecs").meta.endpoint_url))
    if not as_json:
        print_result(render_setup(setup, is_whole=is_dry_run, is_local=is_local))
    if is_dry_run:
        if as_json:
            print_json(setup_json(setup, is_made=False))
        return
    if not setup.is_complete:
        _confirm(is_confirmed=is_confirmed)
        make(setup, outside, partial(_webhook_secret, context, stack), print_note)
    registered = _apply(context, setup.repository.root / DEFINITION_FILE, stack, as_json=as_json)
    if as_json:
        print_json({**setup_json(setup, is_made=True), "definitions": registered})
    else:
        print_text(describe_next(setup, stack, is_local=is_local))


def _survey(stack: str, want: "Callable[[GitRepository], Wanted]", *, has_own_role: bool) -> "tuple[Setup, Outside]":
    """Look at the repository, in which the caller is, and at the account."""
    repository = find_repository(Path.cwd())
    account = AwsAccount()
    with progress("looking at the account"):
        stacks = account.client("cloudformation")
        training_stack = read_training_stack(stack, account.region, stacks)
    wanted = want(repository)
    training_stack = prefer_own_role(training_stack, stack, wanted.training.name, stacks, is_wanted=has_own_role)
    training_stack = prefer_own_access(training_stack, stack, repository.github, stacks)
    outside = Outside(account.client, Gh(), partial(_watched, repository=repository.github))
    with progress("looking at the repository"):
        return survey(repository, wanted, training_stack, outside), outside


def _kind(gpu: int | None, share: int | None, neuron: int | None) -> str | None:
    kinds = [kind for kind, value in (("gpu", gpu), ("share", share), ("neuron", neuron)) if value is not None]
    if len(kinds) > 1:
        raise CommandError("--gpu, --gpu-share and --neuron exclude each other")
    return kinds[0] if kinds else None


def _wanted(
    repository: "GitRepository", *, given: Mapping[str, Any], action: str | None, asks: bool, overwrites: bool
) -> "Wanted":
    if given.get("has_webhook") and not repository.github:
        raise CommandError("--webhook needs a repository at GitHub, and the remote `origin` is none")
    if action and not _ACTION.fullmatch(action):
        raise CommandError(f"{action!r} is no Action: OWNER/NAME@COMMIT, or empty for none")
    known = name_of(repository.github or repository.root.name)
    family = ""
    kind = AcceleratorKind.GPU
    text = None if overwrites else read_text(repository.root, DEFINITION_FILE)
    if text is not None and (found := _definitions(text)):
        known = found[0].name
        family = found[0].task_definition
        kind = AcceleratorKind.NEURON if found[0].accelerator.neuron else kind
    is_described = has_files(repository.root) and not overwrites
    known_kind = {} if "kind" in given or not is_described else {"kind": kind.value}
    training = read_training({**known_kind, **given}, known, _ask if asks and not is_described else None)
    action = _own_action() if action is None else action
    return Wanted(training, family, action, is_given=bool(given), overwrites=overwrites)


def _own_action() -> str:
    """Return the Action of the clone that this command is of, empty if it is of none at GitHub."""
    try:
        github, commit = find_commit(find_source().folder)
    except CommandError:
        return ""
    return f"{github}@{commit}" if github else ""


def _ask(question: str, default: str, check: "Callable[[str], object]") -> str:
    def read(answer: str) -> str:
        try:
            check(answer)
        except CommandError as error:
            # What the prompt asks again after.
            raise typer.BadParameter("; ".join(filter(None, (error.message, error.hint)))) from error
        return answer

    try:
        return str(typer.prompt(question, default=default, err=True, value_proc=read))
    except typer.Abort:
        raise CommandError(f"not answered: {_NOTHING}", exit_code=exit_codes.CANCELLED) from None


def _confirm(*, is_confirmed: bool) -> None:
    if is_confirmed:
        return
    if not can_ask():
        raise CommandError(f"nobody can be asked here, and {_NOTHING}", _NOBODY)
    try:
        is_wanted = typer.confirm("Make this?", err=True)
    except typer.Abort:
        is_wanted = False
    if not is_wanted:
        raise CommandError(_NOTHING, exit_code=exit_codes.CANCELLED)


def _definitions(text: str) -> "Sequence[JobDefinition]":
    return parse_file(text, Path(DEFINITION_FILE), consequence=_NOTHING)


def _watched(text: str, repository: str) -> "Watched":
    triggers = [trigger for each in _definitions(text) for trigger in each.triggers]
    of_github = (each for each in triggers if isinstance(each, GithubTrigger))
    return Watched(
        sorted({each.bucket for each in triggers if isinstance(each, S3Trigger)}),
        sorted({each.event for each in of_github if each.repository.lower() == repository.lower()}),
    )


def _webhook_secret(context: typer.Context, stack: str, repository: str) -> str:
    connection = connect(context, stack)
    return secret_of(repository, connection.webhook, connection.deps.clock.now())


def _apply(context: typer.Context, file: Path, stack: str, *, as_json: bool) -> Any:
    """Register the definitions as `relaunch apply` does; return what it says as JSON."""
    commands: Any = context.parent.command if context.parent else None
    apply = commands.commands["apply"]
    arguments = [str(file), "--stack", stack]
    if not as_json:
        print_note(f"relaunch apply {file.name}")
        with apply.make_context("apply", arguments, parent=context.parent) as found:
            apply.invoke(found)
        return None
    with (
        redirect_stdout(io.StringIO()) as output,
        apply.make_context("apply", [*arguments, "--json"], context.parent) as found,
    ):
        apply.invoke(found)
    return json.loads(output.getvalue())
