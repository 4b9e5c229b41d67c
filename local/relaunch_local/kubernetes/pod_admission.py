"""What refuses a pod in a namespace: a quota, a missing service account or priority class, a webhook, Pod Security.

All of these are asked about pods and not about the Jobs that make them: a Job is taken, has no pod, and says nothing of
it; the Job controller records an event `FailedCreate` each time it tries ("Resource Quotas", "Configure Service
Accounts for Pods", "Dynamic Admission Control"; kubernetes/kubernetes#90124). The words are those of the controllers
in plugin/pkg/admission of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from relaunch_local.kubernetes.pod_security import HAS_ADMISSION, find_refusal
from relaunch_local.kubernetes.quantities import parse_quantity
from relaunch_local.kubernetes.scheduler import is_over, requests_of
from relaunch_local.kubernetes.state import ClusterState, Document


class PodAdmission:
    """Admits pods to the namespaces of a cluster; whoever calls it holds the clock's lock."""

    def __init__(self, state: ClusterState, minor: int) -> None:
        self._state = state
        self._minor = minor
        self.missing_service_accounts: set[str] = set()
        """Names of service accounts that no namespace has."""
        self.priority_classes = {"system-cluster-critical", "system-node-critical"}
        """Names of the priority classes of the cluster."""
        self.webhook = ""
        """What a webhook on pods says to each of them; empty if there is none, or it takes them."""

    def refusal(self, namespace: str, pod: Document) -> str:
        """Return what the API server says to the creation of a pod, empty if it is created."""
        name = pod["metadata"]["name"]
        account = pod["spec"].get("serviceAccountName", "default")
        if account in self.missing_service_accounts:
            missing = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            return f'pods "{name}" is forbidden: {missing}'
        priority = pod["spec"].get("priorityClassName", "")
        if priority and priority not in self.priority_classes:
            return f'pods "{name}" is forbidden: no PriorityClass with name {priority} was found'
        if self.webhook:
            return f'admission webhook "pods.example.com" denied the request: {self.webhook}'
        found = self._state.find("namespaces", "", namespace)
        if self._minor >= HAS_ADMISSION and (refusal := find_refusal(found, pod)):
            return refusal
        return next(self._exceeded(namespace, pod), "")

    def _exceeded(self, namespace: str, pod: Document) -> Iterator[str]:
        """Yield what the quotas of the namespace say that the pod exceeds, which pods that have ended do not use."""
        live = [each for each in self._state.all("pods", namespace) if not is_over(each)]
        for quota in self._state.all("resourcequotas", namespace):
            hard: Mapping[str, str] = quota["spec"]["hard"]
            asked = {key: _amount(pod, key) for key in hard}
            used = {key: sum((_amount(each, key) for each in live), Decimal(0)) for key in hard}
            limits = {key: parse_quantity(limit) or Decimal(0) for key, limit in hard.items()}
            over = [key for key, limit in limits.items() if asked[key] and used[key] + asked[key] > limit]
            if over:
                said = ", ".join(
                    f"{word}: {','.join(f'{key}={amounts[key]}' for key in over)}"
                    for word, amounts in (("requested", asked), ("used", used), ("limited", limits))
                )
                named = f'pods "{pod["metadata"]["name"]}" is forbidden'
                yield f"{named}: exceeded quota: {quota['metadata']['name']}, {said}"


def _amount(pod: Document, key: str) -> Decimal:
    if key in {"pods", "count/pods"}:
        return Decimal(1)
    return requests_of(pod).get(key.removeprefix("requests."), Decimal(0))
