"""What ACK adds for shared GPUs: an extender of the scheduler that knows single cards, and its rules as a webhook.

Sources: "Scheduler extender" (kube-scheduler configuration v1, `Extender`), "Dynamic Admission Control" (Kubernetes).
"""

import base64
import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from relaunch_local.control_plane.loopback_service import Answer
from relaunch_local.kubernetes.ack_rules import find_violation
from relaunch_local.kubernetes.scheduler import choose_card, is_over

Document = dict[str, Any]
WEBHOOK = "relaunch-ack-rules"


class CardScheduler:
    """Answers kube-scheduler: which nodes have a card with room, and binds a pod to one, which it notes on the pod."""

    def __init__(self, api: httpx.Client) -> None:
        self._api = api
        # Two pods that are bound at the same time would see the same room.
        self._binding = threading.Lock()

    def answer(self, path: str, body: bytes) -> Answer:
        """Answer `/filter` or `/bind`; the names in Go's structures are not told apart by upper and lower case."""
        asked = {key.lower(): value for key, value in json.loads(body).items()}
        return Answer(json.dumps(self._filter(asked) if path.endswith("/filter") else self._bind(asked)))

    def _filter(self, asked: Mapping[str, Any]) -> Document:
        fitting = []
        failed = {}
        for node in (asked.get("nodes") or {}).get("items") or ():
            chosen = self._choose(asked["pod"], node)
            if isinstance(chosen, str):
                failed[node["metadata"]["name"]] = chosen
            else:
                fitting.append(node)
        return {"Nodes": {"metadata": {}, "items": fitting}, "FailedNodes": failed}

    def _bind(self, asked: Mapping[str, Any]) -> Document:
        path = f"/api/v1/namespaces/{asked['podnamespace']}/pods/{asked['podname']}"
        with self._binding:
            pod = self._get(path)
            chosen = self._choose(pod, self._get(f"/api/v1/nodes/{asked['node']}"))
            if isinstance(chosen, str):
                return {"Error": chosen}
            metadata = {"name": asked["podname"], "uid": asked.get("poduid"), "annotations": chosen}
            target = {"apiVersion": "v1", "kind": "Node", "name": asked["node"]}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
            answer = self._api.post(f"{path}/binding", json=binding)
        return {"Error": "" if answer.is_success else answer.text}

    def _choose(self, pod: Document, node: Document) -> dict[str, str] | str:
        selector = f"spec.nodeName={node['metadata']['name']}"
        listed = self._api.get("/api/v1/pods", params={"fieldSelector": selector}).json()["items"]
        return choose_card(pod, node, [each for each in listed if not is_over(each)])

    def _get(self, path: str) -> Document:
        answer = self._api.get(path)
        answer.raise_for_status()
        return dict(answer.json())


@dataclass(frozen=True)
class Denial:
    """What a Job is refused with."""

    code: int
    reason: str
    message: str


class JobAdmission:
    """Answers the API server when a Job is created: ACK's rules, and what a test lets the next ones be refused with."""

    def __init__(self) -> None:
        self.denials: deque[Denial] = deque()

    def answer(self, _path: str, body: bytes) -> Answer:
        """Answer an AdmissionReview (admission.k8s.io/v1)."""
        asked = json.loads(body)["request"]
        denial = self.denials.popleft() if self.denials else _violation(asked["object"])
        response: Document = {"uid": asked["uid"], "allowed": denial is None}
        if denial is not None:
            response["status"] = {"code": denial.code, "reason": denial.reason, "message": denial.message}
        return Answer(
            json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        )


def webhook_configuration(url: str, certificate_authority: str) -> Document:
    """Return the configuration with which the API server asks about Jobs."""
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    webhook = {
        "name": f"{WEBHOOK}.example.com",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(certificate_authority.encode()).decode()},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK},
        "webhooks": [webhook],
    }


def _violation(job: Document) -> Denial | None:
    violation = find_violation(job)
    return Denial(422, "Invalid", violation) if violation else None
