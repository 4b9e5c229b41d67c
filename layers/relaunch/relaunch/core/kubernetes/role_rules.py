"""What the functions need of a namespace, held against the rules of a Role ("Using RBAC Authorization", Kubernetes)."""

from collections.abc import Iterable, Mapping, Sequence

from relaunch.core.records import dataclass

ROLE = "relaunch"
"""The name of the Role in infrastructure/kubernetes/role.yaml."""
NEEDED: Mapping[tuple[str, str], frozenset[str]] = {
    ("batch", "jobs"): frozenset({"create", "get", "list", "patch"}),
    ("", "pods"): frozenset({"list"}),
    ("", "events"): frozenset({"list"}),
}
"""By API group and resource, the verbs of that file without which no job runs."""
NEEDED_OF_GANGS: Mapping[tuple[str, str], frozenset[str]] = {
    ("batch", "jobs"): frozenset({"delete"}),
    ("", "services"): frozenset({"create", "delete", "get"}),
}
"""Those that jobs of several nodes need besides.

A Service with an owner may be made by who may delete it (admission plug-in OwnerReferencesPermissionEnforcement). A Job
is deleted whose pods have no ranks.
"""
NODES_ROLE = "relaunch-nodes"
"""The name of the ClusterRole in infrastructure/kubernetes/nodes.yaml."""
NEEDED_OF_NODES: Mapping[tuple[str, str], frozenset[str]] = {("", "nodes"): frozenset({"get"})}
"""The verbs of that file."""
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a Role: each verb on each resource of each API group."""

    groups: frozenset[str]
    resources: frozenset[str]
    verbs: frozenset[str]

    def allows(self, group: str, resource: str, verb: str) -> bool:
        """Return whether the rule allows a verb on a resource."""
        asked = ((self.groups, group), (self.resources, resource), (self.verbs, verb))
        return all(name in names or _ANY in names for names, name in asked)


def missing_verbs(rules: Iterable[Rule], needed: Mapping[tuple[str, str], frozenset[str]] = NEEDED) -> Sequence[str]:
    """Return what the functions need and no rule allows, like `patch jobs`."""
    rules = tuple(rules)
    return [
        f"{verb} {resource}"
        for (group, resource), verbs in needed.items()
        for verb in sorted(verbs)
        if not any(rule.allows(group, resource, verb) for rule in rules)
    ]
