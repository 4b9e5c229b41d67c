"""Checks of any cluster for jobs of Relaunch, with the permissions of whoever makes them."""

from collections.abc import Iterator

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.diagnosis import APPLY_READER, check_namespace, check_node_warnings
from relaunch.adapters.kubernetes.inspection import ClusterInspection
from relaunch.core.checks import Check, is_ok, unknown
from relaunch.core.kubernetes.cluster_checks import GPUS, check_gpu_nodes


def check_cluster(client: KubernetesClient) -> Iterator[Check]:
    """Check a cluster for jobs with GPUs; a check is made when it is asked for.

    Raises:
        TransientError: the cluster does not answer.
        UnauthorizedError: it refuses the credentials.
    """
    yield is_ok("cluster version", client.version().git_version)
    yield from _check_nodes(client)
    yield from check_node_warnings(client)
    yield from check_namespace(client)


def _check_nodes(client: KubernetesClient) -> Iterator[Check]:
    try:
        nodes = ClusterInspection(client).gpu_nodes()
    except ForbiddenError:
        yield unknown(GPUS, "this user has no permission to list nodes and pods", APPLY_READER)
        return
    yield from check_gpu_nodes(nodes)
