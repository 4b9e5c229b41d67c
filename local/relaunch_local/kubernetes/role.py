"""What a user may do, by the manifests of a Role or ClusterRole with its binding, as RBAC decides it.

Source: "Using RBAC Authorization", Kubernetes. All that is not granted is forbidden; `*` and `resourceNames` are not
read here, because the Role of Relaunch has neither.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from relaunch_local.kubernetes.resources import is_public


@dataclass(frozen=True, order=True)
class Access:
    """What a request does: `resource` is such as `jobs` or `pods/log`; the namespace is empty in the whole cluster."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


@dataclass(frozen=True)
class Role:
    """A user's name and what is granted to it."""

    user: str
    grants: frozenset[Access]

    def refusal(self, access: Access, name: str = "") -> str:
        """Return what the API server says to a request that is not granted, for an object of this name; empty if it is.

        Who has signed in may read the server's version, and which resources it has (ClusterRole system:discovery).
        """
        if access in self.grants or (access.resource.startswith("/") and is_public(access.resource)):
            return ""
        kind = f"{access.resource}.{access.group}" if access.group else access.resource
        where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
        quoted = f' "{name}"' if name else ""
        asked = f'cannot {access.verb} resource "{access.resource}" in API group "{access.group}" {where}'
        return f'{kind}{quoted} is forbidden: User "{self.user}" {asked}'


def read_role(file: Path, namespace: str = "") -> Role:
    """Read a Role and its RoleBinding; `namespace` takes the place of the one that they name.

    Raises:
        ValueError: the file has something else, or grants by `*` or to certain names only.
    """
    documents = {each["kind"]: each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each}
    if documents.keys() != {"Role", "RoleBinding"}:
        raise ValueError(f"{file.name} is no Role with its RoleBinding: it has {', '.join(documents)}")
    role = documents["Role"]
    binding = documents["RoleBinding"]
    bound = (binding["roleRef"]["kind"], binding["roleRef"]["name"], binding["metadata"]["namespace"])
    if bound != ("Role", role["metadata"]["name"], role["metadata"]["namespace"]):
        raise ValueError(f"the RoleBinding of {file.name} binds another Role")
    (subject,) = binding["subjects"]
    where = namespace or role["metadata"]["namespace"]
    return Role(subject["name"], frozenset(each for rule in role["rules"] for each in _grants(rule, where)))


def read_cluster_role(file: Path) -> Role:
    """Read a ClusterRole and its ClusterRoleBinding.

    Raises:
        ValueError: the file has something else, or grants by `*` or to certain names only.
    """
    documents = {each["kind"]: each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each}
    if documents.keys() != {"ClusterRole", "ClusterRoleBinding"}:
        raise ValueError(f"{file.name} is no ClusterRole with its ClusterRoleBinding: it has {', '.join(documents)}")
    role = documents["ClusterRole"]
    binding = documents["ClusterRoleBinding"]
    if (binding["roleRef"]["kind"], binding["roleRef"]["name"]) != ("ClusterRole", role["metadata"]["name"]):
        raise ValueError(f"the ClusterRoleBinding of {file.name} binds another role")
    (subject,) = binding["subjects"]
    return Role(subject["name"], frozenset(each for rule in role["rules"] for each in _grants(rule, "")))


def _grants(rule: dict[str, Any], namespace: str) -> Iterable[Access]:
    if rule.keys() != {"apiGroups", "resources", "verbs"} or any("*" in each for each in rule.values()):
        raise ValueError(f"a rule that is not made of groups, resources and verbs by name: {rule}")
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            yield from (Access(verb, group, resource, namespace) for verb in rule["verbs"])
