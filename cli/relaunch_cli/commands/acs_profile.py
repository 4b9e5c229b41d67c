"""`relaunch acs-profile`."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from relaunch.adapters.acs_driver_list import load_acs_drivers
from relaunch.adapters.kubernetes.api.errors import ConflictError, ForbiddenError
from relaunch.core.definitions.kubernetes_workload import ComputeClass
from relaunch.core.kubernetes.acs import GPU_MODEL, is_driver_version
from relaunch.core.kubernetes.acs_profile import (
    KEY,
    NAME,
    NAMESPACE,
    NoDefaultDriverError,
    PodSelection,
    ProfileError,
    read_selectors,
    remove_driver,
    set_driver,
)
from relaunch.ports import TransientError
from relaunch_cli import exit_codes
from relaunch_cli.confirmation import confirm
from relaunch_cli.errors import CommandError
from relaunch_cli.options import Json
from relaunch_cli.own_cluster import Context, Kubeconfig, open_cluster
from relaunch_cli.views.acs_profile import Change, DefaultRow, render_defaults, render_difference
from relaunch_cli.views.screen import print_json, print_note, print_result, print_text, stderr_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relaunch.adapters.kubernetes.api.client import KubernetesClient
    from relaunch.adapters.kubernetes.api.models import ConfigMap

_ATTEMPTS = 5
_EDIT = "correct it with `kubectl -n kube-system edit configmap acs-profile`"
_SHARES = (
    "pods with a share of a GPU of class gpu-hpn must have no driver label, and get this one: use another driver only "
    "where no such pods run"
)


def acs_profile(  # noqa: PLR0913 - a command has the options it has
    driver: Annotated[str, typer.Option(metavar="VERSION", help="The default driver to set, like 535.161.08.")] = "",
    compute_class: Annotated[
        Literal["gpu", "gpu-hpn"] | None, typer.Option(help="The compute class whose pods get it.")
    ] = None,
    model: Annotated[str, typer.Option(metavar="MODEL", help="Only pods of this model of class gpu, like T4.")] = "",
    *,
    is_removal: Annotated[bool, typer.Option("--remove", help="Remove the default driver of these pods.")] = False,
    is_unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Set a driver that the bundled list does not have, too.")
    ] = False,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
) -> None:
    """Show or set the driver that GPU pods of an ACS cluster get if they name none.

    Without options it shows what the cluster's ConfigMap kube-system/acs-profile sets. A change is shown and
    confirmed; of the ConfigMap only the key `selectors` changes, and in it only the selector of these pods. New pods
    get it at once, running ones never.
    """
    pods = _read_pods(driver, compute_class, model, is_removal=is_removal)
    with open_cluster(kubeconfig, context) as cluster:
        if pods is None:
            _show(cluster, as_json=as_json)
            return
        if driver:
            _check_driver(driver, pods, is_unlisted=is_unlisted)
        _change(cluster, pods, driver, is_sure=is_sure, as_json=as_json)


def _read_pods(driver: str, compute_class: str | None, model: str, *, is_removal: bool) -> "PodSelection | None":
    """Return the pods that a change is about, None for none."""
    if driver and is_removal:
        raise CommandError("--driver and --remove cannot be combined")
    if not driver and not is_removal:
        if compute_class or model:
            raise CommandError("nothing to do for these pods", "give --driver VERSION or --remove")
        return None
    if compute_class is None:
        raise CommandError("--compute-class is missing", "a default driver is one of class gpu or of class gpu-hpn")
    if model and compute_class == "gpu-hpn":
        hint = "leave --model out; a definition names the driver of its own pods (`kubernetes.gpu_driver`)"
        raise CommandError("pods of class gpu-hpn have no label with their model, which a selector could find", hint)
    return PodSelection(ComputeClass(compute_class), model)


def _check_driver(driver: str, pods: "PodSelection", *, is_unlisted: bool) -> None:
    if not is_driver_version(driver):
        raise CommandError(f"{driver!r} is not a driver version", "write it like 535.161.08")
    drivers = load_acs_drivers()
    if doubt := drivers.doubt(driver, pods.model):
        if not is_unlisted:
            raise CommandError(doubt, "--unlisted sets it all the same; see ACS's page of GPU driver versions")
        print_note(doubt)
    elif not pods.model and len(owners := drivers.models_with(driver)) < len(drivers.models):
        print_note(f"of all models only {', '.join(owners)} have driver {driver}, and pods of all models get it")
    if pods.compute_class.value == "gpu-hpn":
        print_note(_SHARES)


def _show(cluster: "KubernetesClient", *, as_json: bool) -> None:
    try:
        selectors = read_selectors(_load(cluster).data.get(KEY, ""))
    except ProfileError as error:
        raise _refuse(error) from error
    drivers = load_acs_drivers()
    rows = [
        DefaultRow(each, drivers.doubt(each.driver, str(each.match_labels.get(GPU_MODEL, ""))))
        for each in selectors
        if each.driver
    ]
    if as_json:
        print_json({"drivers": [row.to_json() for row in rows]})
        return
    print_result(render_defaults(rows))
    for row in rows:
        if row.doubt:
            print_note(f"{row.selector.name or 'a selector without a name'}: {row.doubt}")


def _change(cluster: "KubernetesClient", pods: "PodSelection", driver: str, *, is_sure: bool, as_json: bool) -> None:
    """Read, change and replace the ConfigMap until nobody else changes it in between.

    A change that differs from the one that was confirmed is shown and confirmed again.
    """
    confirmed: Change | None = None
    for _ in range(_ATTEMPTS):
        profile = _load(cluster)
        before = profile.data.get(KEY, "")
        change = Change(pods, driver, before, _edit(before, pods, driver))
        if change.is_needed and change != confirmed:
            stderr_console().print(render_difference(change))
            for each in change.overlaps:
                print_note(f"{each} sets a driver for some of these pods, too: which one counts is not documented")
            if not is_sure:
                confirm("Change kube-system/acs-profile?", done="changed", does="changes it")
            confirmed = change
        if not change.is_needed or _replace(cluster, profile.with_value(KEY, change.after)):
            if as_json:
                print_json(change.to_json())
            else:
                print_text(change.summary)
            return
    raise CommandError(
        f"nothing was changed: others changed kube-system/acs-profile {_ATTEMPTS} times in between",
        "try again",
        exit_codes.UNAVAILABLE,
    )


def _edit(text: str, pods: "PodSelection", driver: str) -> str:
    try:
        return set_driver(text, pods, driver) if driver else remove_driver(text, pods)
    except NoDefaultDriverError as error:
        hint = "`relaunch acs-profile` shows which there are"
        raise CommandError(f"nothing was removed: {error}", hint, exit_codes.NOT_FOUND) from error
    except ProfileError as error:
        raise _refuse(error) from error


def _load(cluster: "KubernetesClient") -> "ConfigMap":
    with _naming_permission("get"):
        profile = cluster.get_config_map(NAMESPACE, NAME)
    if profile is None:
        hint = "ACS makes it with its component acs-virtual-node: is this the kubeconfig of an ACS cluster?"
        raise CommandError(f"the cluster has no ConfigMap {NAMESPACE}/{NAME}", hint, exit_codes.NOT_FOUND)
    return profile


def _replace(cluster: "KubernetesClient", changed: "ConfigMap") -> bool:
    """Replace the ConfigMap; return False if it was changed since it was read."""
    try:
        with _naming_permission("update"):
            cluster.replace_config_map(changed)
    except ConflictError:
        return False
    except TransientError:
        # It may have been replaced although no answer came.
        if _load(cluster).data != changed.data:
            raise
    return True


@contextmanager
def _naming_permission(verb: str) -> "Iterator[None]":
    try:
        yield
    except ForbiddenError as error:
        hint = f"you need a Role in namespace kube-system that allows to {verb} the ConfigMap acs-profile"
        raise CommandError(str(error), hint, exit_codes.REFUSED) from error


def _refuse(error: "ProfileError") -> CommandError:
    return CommandError(f"`selectors` of kube-system/acs-profile cannot be changed safely: {error}", _EDIT)
