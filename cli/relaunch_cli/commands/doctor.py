"""`relaunch doctor`."""

from typing import Annotated, Literal

import typer

from relaunch_cli import exit_codes
from relaunch_cli.options import Json
from relaunch_cli.own_cluster import Context, Kubeconfig, open_cluster

_DEFAULT_NAMESPACE = "training"


def doctor(  # noqa: PLR0913, PLR0917 - a command has the options it has
    target: Annotated[Literal["ack", "acs"], typer.Option(help="The kind of cluster to check.")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="The namespace of the jobs.")
    ] = _DEFAULT_NAMESPACE,
    region: Annotated[
        str, typer.Option(metavar="REGION", help="ack: Alibaba Cloud region of the cluster, for example cn-beijing.")
    ] = "",
    scheduler: Annotated[
        str, typer.Option(metavar="VERSION", help="ack: version of kube-scheduler, which only the console shows.")
    ] = "",
    as_json: Json = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Check what a cluster needs for jobs, and say what to do about what it lacks.

    The cluster is read with your own kubeconfig; nothing is changed. What you may not read is unknown, which is no
    problem. The exit code is 2 if there is a problem.
    """
    from relaunch.adapters.kubernetes.acs_diagnosis import check_acs
    from relaunch.adapters.kubernetes.diagnosis import Known, check_ack
    from relaunch.core.checks import Verdict
    from relaunch_cli.views.checks import checks_json, render_checks
    from relaunch_cli.views.screen import print_json, print_result, progress

    with open_cluster(kubeconfig, context, namespace) as cluster, progress(f"checking the {target} cluster"):
        checks = list(check_acs(cluster) if target == "acs" else check_ack(cluster, Known(region, scheduler)))
    if as_json:
        print_json(checks_json(checks))
    else:
        print_result(render_checks(checks))
    if any(each.verdict is Verdict.PROBLEM for each in checks):
        raise typer.Exit(exit_codes.USAGE)
