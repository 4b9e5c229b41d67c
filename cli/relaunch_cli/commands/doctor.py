"""`relaunch doctor`."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, assert_never

import typer
from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.kubernetes.acs_diagnosis import check_acs
from relaunch.adapters.kubernetes.cluster_diagnosis import check_cluster
from relaunch.adapters.kubernetes.diagnosis import Known, check_ack
from relaunch.core.checks import Verdict, problem
from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch_cli import exit_codes
from relaunch_cli.account_checks.local_gaps import without_gaps
from relaunch_cli.account_readers.calls import AccountCalls
from relaunch_cli.account_readers.diagnosis import (
    make_checks,
    parts_of_account,
    parts_of_definitions,
    parts_of_stack,
    read_registered,
)
from relaunch_cli.errors import CommandError, NotConnectedError
from relaunch_cli.lookup import connect
from relaunch_cli.loopback import is_loopback
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.own_cluster import Context, Kubeconfig, open_cluster
from relaunch_cli.views.checks import checks_json, render_checks
from relaunch_cli.views.screen import print_json, print_note, print_result, progress

if TYPE_CHECKING:
    from relaunch.adapters.kubernetes.api.client import KubernetesClient
    from relaunch.core.checks import Check
    from relaunch_cli.aws.connected import Connection

_DEFAULT_NAMESPACE = "training"


def doctor(  # noqa: PLR0913 - a command has the options it has
    typer_context: typer.Context,
    target: Annotated[
        Target, typer.Option(help="The AWS account of a stack, or the kind of cluster to check.")
    ] = Target.ECS,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="clusters: the namespace of the jobs.")
    ] = _DEFAULT_NAMESPACE,
    region: Annotated[
        str,
        typer.Option(
            metavar="REGION",
            help="ecs: region of AWS, the one in use else; ack: region of Alibaba Cloud, for example cn-beijing.",
        ),
    ] = "",
    scheduler: Annotated[
        str, typer.Option(metavar="VERSION", help="ack: version of kube-scheduler, which only the console shows.")
    ] = "",
    *,
    as_json: Json = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Check what an AWS account or a cluster needs for jobs, and say what to do about what it lacks.

    The account is read with your own AWS credentials, a cluster with your own kubeconfig; nothing is changed. What you
    may not read is unknown, which is no problem. The exit code is 2 if there is a problem.
    """
    check = _find_check(target, Known(region, scheduler))
    if check is not None:
        with open_cluster(kubeconfig, context, namespace) as cluster, progress(f"checking the {target} cluster"):
            checks: Sequence[Check] = list(check(cluster))
    elif kubeconfig or context or scheduler:
        hint = f"add --target {', '.join(WITH_PODS[:-1])} or {WITH_PODS[-1]}"
        raise CommandError("--kubeconfig, --context and --scheduler are of clusters", hint)
    else:
        with progress(f"checking the AWS account of the stack {stack}"):
            checks = _check_account(connect(typer_context, stack, region), stack)
    if as_json:
        print_json(checks_json(checks))
    else:
        print_result(render_checks(checks))
    if any(each.verdict is Verdict.PROBLEM for each in checks):
        raise typer.Exit(exit_codes.USAGE)


def _find_check(target: Target, known: Known) -> "Callable[[KubernetesClient], Iterator[Check]] | None":
    """Return what checks a cluster of a target; None for ECS, which is in the account."""
    match target:
        case Target.ECS:
            return None
        case Target.KUBERNETES:
            return check_cluster
        case Target.ACK:
            return lambda cluster: check_ack(cluster, known)
        case Target.ACS:
            return check_acs
        case _:
            assert_never(target)


def _check_account(connection: "Connection", stack: str) -> "Sequence[Check]":
    """Check the account; without a stack that can be read, what does not need one.

    Raises:
        CommandError: no region, or no credentials.
        ClientError: AWS does not accept the credentials.
    """
    account = connection.account
    _ = connection.caller  # the credentials are good, whatever they permit
    calls = AccountCalls(account)
    checks = [*make_checks(parts_of_account(stack, calls)), *_check_stack(connection, stack, calls)]
    if not is_loopback(str(calls.client("ecs").meta.endpoint_url)):
        return checks
    found = without_gaps(checks)
    if found.left_out:
        print_note(f"the local world cannot tell: {', '.join(found.left_out)}")
    return found.checks


def _check_stack(connection: "Connection", stack: str, calls: "AccountCalls") -> "Sequence[Check]":

    try:
        access = connection.access
    except (NotConnectedError, BotoCoreError, ClientError):
        return []  # what is wrong with the stack, its own check has said
    except CommandError as error:
        return [problem(f"outputs of {stack}", error.message, f"relaunch deploy; {error.hint}")]
    registered = read_registered(access.deps)
    parts = parts_of_stack(stack, access, calls)
    parts += parts_of_definitions(connection.account.region, access, registered, calls)
    return [*registered.unread, *make_checks(parts)]
