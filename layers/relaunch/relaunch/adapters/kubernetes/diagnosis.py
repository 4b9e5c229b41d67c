"""Checks of a cluster for jobs of Relaunch, with the permissions of whoever makes them."""

from collections.abc import Callable, Iterator

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.api.models import ServerVersion
from relaunch.adapters.kubernetes.gang_manifest import KNOWS_GANGS
from relaunch.adapters.kubernetes.inspection import SYSTEM_NAMESPACE, ClusterInspection
from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.definitions.kubernetes_workload import PodSecurity
from relaunch.core.kubernetes import ack_checks
from relaunch.core.kubernetes.role_rules import NEEDED_OF_GANGS, NEEDED_OF_NODES, NODES_ROLE, ROLE, missing_verbs
from relaunch.core.kubernetes.role_subjects import check_subjects
from relaunch.core.records import dataclass

_APPLY_ROLE = "kubectl apply -f infrastructure/kubernetes/role.yaml"
_APPLY_NODES = "kubectl apply -f infrastructure/kubernetes/nodes.yaml"
APPLY_READER = "kubectl apply -f infrastructure/kubernetes/reader.yaml"
_CGPU = "cgpu"
_GANGS = "jobs with nodes"
_ENFORCED = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a cluster that it does not tell: its region, and the version of its scheduler."""

    region: str = ""
    scheduler: str = ""


def check_ack(client: KubernetesClient, known: Known) -> Iterator[Check]:
    """Check an ACK cluster for jobs with shares of GPUs; a check is made when it is asked for.

    Raises:
        TransientError: the cluster does not answer.
        UnauthorizedError: it refuses the credentials.
    """
    cluster = ClusterInspection(client)
    version = client.version()
    yield ack_checks.check_cluster_version(version.minor, version.git_version)
    yield ack_checks.check_region(known.region)
    yield ack_checks.check_scheduler(version.minor, known.scheduler)
    yield _unless_forbidden(
        ack_checks.CHART,
        lambda: ack_checks.check_chart(cluster.chart_version(ack_checks.CHART)),
        f"to list secrets in {SYSTEM_NAMESPACE}, which nothing of Relaunch gives",
        f"helm list -n {SYSTEM_NAMESPACE}",
    )
    yield _unless_forbidden(
        "cGPU",
        lambda: ack_checks.check_cgpu(cluster.image_versions(_CGPU)),
        f"to list DaemonSets in {SYSTEM_NAMESPACE}",
    )
    yield from _check_nodes(cluster)
    yield from check_node_warnings(client)
    yield from check_namespace(client)


def _check_nodes(cluster: ClusterInspection) -> Iterator[Check]:
    try:
        nodes = cluster.gpu_nodes()
    except ForbiddenError:
        yield unknown("nodes", "this user has no permission to list nodes and pods", APPLY_READER)
        return
    yield from ack_checks.check_nodes(nodes)


def check_namespace(client: KubernetesClient) -> Iterator[Check]:
    """Check the namespace of the jobs, and what the functions may do there.

    Raises:
        TransientError: the cluster does not answer.
        UnauthorizedError: it refuses the credentials.
    """
    cluster = ClusterInspection(client)
    namespace = client.namespace
    yield _unless_forbidden("namespace", lambda: _check_namespace(cluster, namespace), "to read namespaces")
    yield _unless_forbidden("role", lambda: _check_role(cluster, namespace), f"to read Roles in {namespace}")
    yield from _check_gangs(cluster, namespace, client.version())


def check_node_warnings(client: KubernetesClient) -> Iterator[Check]:
    """Check whether the functions may read nodes, whose taints announce that they are taken away.

    Raises:
        TransientError: the cluster does not answer.
        UnauthorizedError: it refuses the credentials.
    """
    cluster = ClusterInspection(client)
    yield _unless_forbidden("node warnings", lambda: _check_node_warnings(cluster), "to read ClusterRoles")


def _check_node_warnings(cluster: ClusterInspection) -> Check:
    """Check the ClusterRole, which jobs run without: that it is missing is no problem."""
    rules = cluster.role_rules("", NODES_ROLE)
    missing = "" if rules is None else ", ".join(missing_verbs(rules, NEEDED_OF_NODES))
    subjects = [] if rules is None or missing else cluster.subjects_of("", NODES_ROLE)
    if subjects:
        return is_ok("node warnings", f"{NODES_ROLE} is given to {', '.join(subjects)}")
    if rules is None:
        text = f"there is no ClusterRole {NODES_ROLE}"
    elif missing:
        text = f"the ClusterRole {NODES_ROLE} does not allow {missing}"
    else:
        text = f"no ClusterRoleBinding gives anybody the ClusterRole {NODES_ROLE}"
    return unknown("node warnings", f"{text}: that a node is taken away, its pods alone tell", _APPLY_NODES)


def _check_namespace(cluster: ClusterInspection, namespace: str) -> Check:
    labels = cluster.namespace_labels(namespace)
    if labels is None:
        return problem("namespace", f"there is no namespace {namespace}", f"kubectl create namespace {namespace}")
    if labels.get(_ENFORCED) == PodSecurity.RESTRICTED:
        # The Job is taken all the same, and waits without a pod ("Pod Security Admission", Kubernetes documentation).
        text = f"{namespace} takes pods of the level restricted alone: definitions need `pod_security: restricted`"
        return is_ok("namespace", text)
    return is_ok("namespace", namespace)


def _check_role(cluster: ClusterInspection, namespace: str) -> Check:
    rules = cluster.role_rules(namespace, ROLE)
    if rules is None:
        return problem("role", f"there is no Role {ROLE} in {namespace}", _APPLY_ROLE)
    if missing := missing_verbs(rules):
        return problem("role", f"the Role {ROLE} does not allow {', '.join(missing)}", _APPLY_ROLE)
    subjects = cluster.subjects_of(namespace, ROLE)
    if not subjects:
        return problem("role", f"no RoleBinding gives anybody the Role {ROLE}", _APPLY_ROLE)
    return check_subjects("role", ROLE, subjects, cluster.own_name())


def _check_gangs(cluster: ClusterInspection, namespace: str, version: ServerVersion) -> Iterator[Check]:
    """Check what jobs of several nodes need besides, without which all others run: that it lacks is no problem."""
    if version.minor < KNOWS_GANGS:
        text = f"jobs with `nodes` are refused: they need Kubernetes 1.{KNOWS_GANGS}, and this is {version.git_version}"
        yield unknown(_GANGS, text)
        return
    try:
        rules = cluster.role_rules(namespace, ROLE)
    except ForbiddenError:
        return
    if rules is None:
        return
    if missing := missing_verbs(rules, NEEDED_OF_GANGS):
        text = f"the Role {ROLE} does not allow {', '.join(missing)}, for which jobs with `nodes` wait"
        yield unknown(_GANGS, text, _APPLY_ROLE)
        return
    yield is_ok(_GANGS, f"{version.git_version} gives pods their ranks, and {ROLE} allows the Service of their Job")


def _unless_forbidden(name: str, check: Callable[[], Check], permission: str, to_do: str = APPLY_READER) -> Check:
    try:
        return check()
    except ForbiddenError:
        return unknown(name, f"this user has no permission {permission}", to_do)
