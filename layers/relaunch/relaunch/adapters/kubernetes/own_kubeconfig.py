"""The kubeconfig of whoever runs the `relaunch` command, as kubectl finds it ("Organizing Cluster Access", Kubernetes).

kubectl merges several files; here the first one counts.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess, KubeconfigError, read_kubeconfig

DEFAULT_FILE = Path(".kube/config")


def read_own_kubeconfig(
    environment: Mapping[str, str], home: Path, file: Path | None = None, context: str = ""
) -> ClusterAccess:
    """Read `file`, else the first file of $KUBECONFIG, else `.kube/config` in the home directory.

    `context` is one of its contexts, the current one if empty.

    Raises:
        KubeconfigError: it cannot be read, or cannot be used.
    """
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    file = file or (Path(named[0]) if named else home / DEFAULT_FILE)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no UTF-8 text"
        raise KubeconfigError(f"{file} cannot be read: {reason}; name another file in $KUBECONFIG") from error
    return read_kubeconfig(text, context)
