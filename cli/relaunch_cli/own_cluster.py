"""The cluster of the caller's own kubeconfig, for commands that need no stack."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.own_kubeconfig import read_own_kubeconfig

Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig; $KUBECONFIG or ~/.kube/config else.")
]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="Context of it; the current one else.")]


@contextmanager
def open_cluster(kubeconfig: Path | None, context: str, namespace: str = "") -> "Iterator[KubernetesClient]":
    """Open a client of the cluster that a kubeconfig names, and close it; `namespace` is the context's if empty.

    Raises:
        KubeconfigError: the kubeconfig cannot be read, or cannot be used.
    """
    access = read_own_kubeconfig(os.environ, Path.home(), kubeconfig, context)
    with closing(KubernetesClient(Connection(lambda: access, namespace))) as client:
        yield client
