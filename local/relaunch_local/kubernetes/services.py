"""Services, of which a launcher makes headless ones: what is refused of them, and which pod a name leads to.

Sources: ValidateService in pkg/apis/core/validation and IsDNS1035Label in k8s.io/apimachinery; "DNS for Services
and Pods", Kubernetes documentation.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from relaunch_local.kubernetes.errors import ApiError, invalid
from relaunch_local.kubernetes.state import ClusterState, Document, has_condition

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_MAX_NAME = 63


def admit_service(state: ClusterState, namespace: str, sent: Mapping[str, Any], *, is_dry: bool) -> Document:
    """Create a Service; with `is_dry` only say what would be answered.

    Raises:
        ApiError: it is invalid, or there is one of its name.
    """
    service = deepcopy(dict(sent))
    name = service.get("metadata", {}).get("name", "")
    if problems := list(_problems(service, name)):
        raise invalid("Service", name, problems)
    if state.find("services", namespace, name) is not None:
        raise ApiError(409, "AlreadyExists", f'services "{name}" already exists')
    service |= {"apiVersion": "v1", "kind": "Service", "status": {"loadBalancer": {}}}
    return service if is_dry else state.add("services", namespace, service)


def _problems(service: Mapping[str, Any], name: str) -> Iterator[str]:
    spec = service.get("spec") or {}
    if not name:
        yield "metadata.name: Required value: name or generateName is required"
    elif len(name) > _MAX_NAME:
        yield f'metadata.name: Invalid value: "{name}": must be no more than {_MAX_NAME} characters'
    elif not _NAME.fullmatch(name):
        yield f'metadata.name: Invalid value: "{name}": {_NAME_RULE}'
    for number, owner in enumerate(service.get("metadata", {}).get("ownerReferences") or ()):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield f'metadata.ownerReferences[{number}].{key}: Invalid value: "": {key} must not be empty'
    if not spec.get("ports") and spec.get("clusterIP") != "None":
        yield "spec.ports: Required value"


def resolve(state: ClusterState, namespace: str, name: str) -> Document | None:
    """Return the pod to which a name `<host name>.<subdomain>` leads, None if DNS does not know it.

    A headless Service of the name of the subdomain has to select the pod, and the pod to have an address: once it has a
    node, and is ready unless addresses of others are published too.
    """
    hostname, _, subdomain = name.partition(".")
    service = state.find("services", namespace, subdomain)
    if service is None or service["spec"].get("clusterIP") != "None":
        return None
    selector = service["spec"].get("selector") or {}
    for pod in state.all("pods", namespace):
        labels = pod["metadata"].get("labels") or {}
        is_named = (pod["spec"].get("hostname"), pod["spec"].get("subdomain")) == (hostname, subdomain)
        is_selected = bool(selector) and selector.items() <= labels.items()
        is_published = service["spec"].get("publishNotReadyAddresses") or has_condition(pod, "Ready")
        if is_named and is_selected and is_published and pod["spec"].get("nodeName"):
            return pod
    return None
