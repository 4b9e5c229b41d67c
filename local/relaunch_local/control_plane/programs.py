"""The programs of a control plane: those of $KUBEBUILDER_ASSETS, or those that were built here."""

import os
from collections.abc import Mapping
from pathlib import Path

from relaunch_local.repository import REPOSITORY

ASSETS = "KUBEBUILDER_ASSETS"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
BUILT = REPOSITORY / ".cache" / "kubernetes" / "1.20.2"


class ProgramsMissingError(Exception):
    """There is no complete set of programs; the message says how to get one."""


def find_programs(environment: Mapping[str, str], built: Path = BUILT) -> Path | None:
    """Return the folder with the programs, None if they have to be built.

    Raises:
        ProgramsMissingError: $KUBEBUILDER_ASSETS is set, and they are not all there.
    """
    assets = environment.get(ASSETS)
    folder = Path(assets) if assets else built
    missing = [name for name in PROGRAMS if not _is_program(folder / name)]
    if not missing:
        return folder
    if assets:
        raise ProgramsMissingError(
            f"{ASSETS}={assets} has no {', '.join(missing)}: put the programs of one release of Kubernetes there "
            "(setup-envtest leaves out kube-controller-manager and kube-scheduler, kubernetes-server-*.tar.gz has them)"
        )
    return None


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
