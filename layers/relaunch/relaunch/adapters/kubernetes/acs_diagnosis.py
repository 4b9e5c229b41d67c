"""Checks of an ACS cluster for jobs of Relaunch, with the permissions of whoever makes them."""

from collections.abc import Iterator

from relaunch.adapters.acs_driver_list import load_acs_drivers
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.api.models import Node
from relaunch.adapters.kubernetes.diagnosis import APPLY_READER, check_namespace
from relaunch.core.checks import Check, is_ok, unknown
from relaunch.core.kubernetes.acs_checks import NODES, PROFILE, AcsNode, check_nodes, check_profile
from relaunch.core.kubernetes.acs_profile import KEY, NAME, NAMESPACE


def check_acs(client: KubernetesClient) -> Iterator[Check]:
    """Check an ACS cluster for jobs with GPUs; a check is made when it is asked for.

    Raises:
        TransientError: the cluster does not answer.
        UnauthorizedError: it refuses the credentials.
    """
    yield is_ok("cluster version", client.version().git_version)
    yield from _check_profile(client)
    yield from _check_nodes(client)
    yield from check_namespace(client)


def _check_profile(client: KubernetesClient) -> Iterator[Check]:
    try:
        profile = client.get_config_map(NAMESPACE, NAME)
    except ForbiddenError:
        yield unknown(PROFILE, f"this user may not read ConfigMap {NAME} in {NAMESPACE}", APPLY_READER)
        return
    yield from check_profile(None if profile is None else profile.data.get(KEY, ""), load_acs_drivers())


def _check_nodes(client: KubernetesClient) -> Iterator[Check]:
    try:
        nodes = [_read_node(node) for page in client.list_nodes() for node in page]
    except ForbiddenError:
        yield unknown(NODES, "this user may not list nodes", APPLY_READER)
        return
    # A list that had to be restarted has nodes twice.
    yield from check_nodes({each.name: each for each in nodes}.values(), load_acs_drivers())


def _read_node(node: Node) -> AcsNode:
    return AcsNode(node.metadata.name, node.metadata.labels, node.is_ready)
