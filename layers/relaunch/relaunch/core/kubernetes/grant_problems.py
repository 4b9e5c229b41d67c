"""Finds what a definition asks for that its stack does not let pods have."""

from collections.abc import Iterator, Mapping

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.core.kubernetes.problem import Problem, of_workload
from relaunch.core.kubernetes.rules import purchase_options
from relaunch.core.revisions.image_name import parse_image_name

_CHANGE = "or change the parameter of the stack"


def find_grant_problems(definition: JobDefinition, grants: PodGrants, image: str = "") -> tuple[Problem, ...]:
    """Return what a definition asks for that the stack does not let pods have, and the parameter that says so.

    `image` is the one that its pod gets where that is not the definition's. A target without pods has none.
    """
    workload = definition.kubernetes
    if workload is None or not definition.target.capabilities.runs_pods:
        return ()
    found = _find_problems(workload, image or workload.image, grants)
    has_labels = definition.target.capabilities.has_node_labels
    return (*found, *(_find_label_problems(definition, workload, grants.nodes) if has_labels else ()))


def _find_label_problems(
    definition: JobDefinition, workload: KubernetesWorkload, nodes: NodeLabels
) -> Iterator[Problem]:
    if PurchaseOption.SPOT in purchase_options(definition) and nodes.spot is None:
        text = (
            "the stack does not say which nodes of its cluster are on spot: set its parameter KubernetesSpotLabel, for "
            "example to karpenter.sh/capacity-type=spot, or set `purchase` to on-demand"
        )
        yield Problem(("purchase",), text)
    taken = {each.key: "purchase" for each in (nodes.spot, nodes.on_demand) if each is not None}
    if workload.gpu_model:
        taken[nodes.gpu_model] = "kubernetes.gpu_model"
    for key in sorted(taken.keys() & workload.node_selector.keys()):
        yield of_workload("node_selector", f"`{key}` is taken: say `{taken[key]}`", key)


def _find_problems(workload: KubernetesWorkload, image: str, grants: PodGrants) -> Iterator[Problem]:
    for key, each in (("image", image), *(("pod", each) for each in _fragment_images(workload))):
        if grants.images is not None and not _has_image(each, grants.images):
            allowed = ", ".join(grants.images) or "none"
            text = (
                f"the stack may not run the image {each}: its parameter KubernetesImages has {allowed}; push the image "
                f"to such a repository, {_CHANGE}"
            )
            yield of_workload(key, text)
    account = workload.service_account
    if account and not any(_matches(account, pattern) for pattern in grants.service_accounts):
        allowed = ", ".join(grants.service_accounts) or "none"
        text = (
            f"the stack may not give pods the service account {account}: its parameter KubernetesServiceAccounts has "
            f"{allowed}; leave `service_account` out, {_CHANGE}"
        )
        yield of_workload("service_account", text)


def _fragment_images(workload: KubernetesWorkload) -> Iterator[str]:
    """Yield the images of the init containers of a fragment; what is none is refused by pod_fragment."""
    spec = workload.pod.get("spec")
    added = spec.get("initContainers") if isinstance(spec, Mapping) else None
    for each in added if isinstance(added, list) else ():
        if isinstance(each, Mapping):
            yield str(each.get("image", ""))


def _has_image(image: str, patterns: tuple[str, ...]) -> bool:
    name = parse_image_name(image)
    return name is not None and any(_matches(name.without_tag, pattern) for pattern in patterns)


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
