"""The Kubernetes clusters of a stack, how it signs in to them, the labels of their nodes, and what pods may have."""

import re
from collections.abc import Mapping
from dataclasses import field

from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.core.records import dataclass
from relaunch.setting_values import InvalidSettingsError, split

DEFAULT_NAMESPACE = "training"

# The first part is the name of a registry; without one an image is Docker Hub's, docker.io.
_IMAGES = re.compile(r"(?:[A-Za-z0-9-]+[.:])+[A-Za-z0-9-]+/(?:[a-z0-9._/-]+|[a-z0-9._/-]*\*)")
_SERVICE_ACCOUNTS = re.compile(r"[a-z0-9][a-z0-9.-]*\*?")
_ANY_IMAGE = "any"
# "Labels and Selectors", Kubernetes documentation.
_LABEL_KEY = r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster: its ID and region in Alibaba Cloud, or the secret in AWS Secrets Manager that has its kubeconfig.

    That of a cluster of EKS, in the account and region of the stack, is its name.
    """

    cluster_id: str = ""
    region: str = ""
    kubeconfig_secret_arn: str = ""


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """The clusters by target, and the namespace that jobs have in each.

    Without a secret of its own, a cluster of Alibaba Cloud is signed in to as the RAM role, by the OIDC provider that
    stands for AWS, and one of EKS as the role of the function. As the RAM role checkpoints are read from OSS, in the
    buckets of one region.
    """

    clusters: Mapping[Target, ClusterSettings] = field(default_factory=dict)
    namespace: str = DEFAULT_NAMESPACE
    role_arn: str = ""
    oidc_provider_arn: str = ""
    oss_region: str = ""

    @classmethod
    def from_named(cls, values: Mapping[str, str], names: Mapping[str, str]) -> "KubernetesSettings":
        """Read the settings from the values of these names; all may be missing.

        Raises:
            ValueError: a setting is invalid, or one that it needs is missing.
        """
        role = values.get(names["alibaba_role"], "")
        provider = values.get(names["alibaba_oidc_provider"], "")
        clusters = {target: _cluster(target, values, names) for target in WITH_PODS}
        clusters = {target: cluster for target, cluster in clusters.items() if cluster != ClusterSettings()}
        for target, cluster in clusters.items():
            if not target.capabilities.is_on_alibaba_cloud:
                continue
            needed = {names[f"{target}_region"]: cluster.region, names["alibaba_role"]: role}
            needed[names["alibaba_oidc_provider"]] = provider
            missing = [name for name, value in needed.items() if not value]
            if missing and not cluster.kubeconfig_secret_arn:
                raise ValueError(
                    f"setting {missing[0]} is missing: {names[f'{target}_cluster_id']} needs {', '.join(needed)}, or "
                    f"{names[f'{target}_secret']} alone"
                )
        oss_region = values.get(names["oss_region"], "")
        if oss_region and not (role and provider):
            missing_name = names["alibaba_oidc_provider"] if role else names["alibaba_role"]
            raise ValueError(f"setting {missing_name} is missing: {names['oss_region']} needs it")
        namespace = values.get(names["kubernetes_namespace"], "") or DEFAULT_NAMESPACE
        if _NAMESPACE.fullmatch(namespace) is None:
            raise ValueError(f"setting {names['kubernetes_namespace']}: {namespace!r} is no name of a namespace")
        return cls(clusters, namespace, role, provider, oss_region)


def _cluster(target: Target, values: Mapping[str, str], names: Mapping[str, str]) -> ClusterSettings:
    parts = ("cluster_id", "region", "secret")
    # One of EKS is in the region of the stack.
    cluster_id, region, secret = (values.get(names.get(f"{target}_{part}", ""), "") for part in parts)
    if not cluster_id and not secret:
        return ClusterSettings()
    return ClusterSettings(cluster_id, region, secret)


def read_pod_grants(values: Mapping[str, str], names: Mapping[str, str]) -> PodGrants:
    """Read what pods may have; all images, no service account, and the labels of GPU feature discovery by default.

    Raises:
        InvalidSettingsError: a setting is invalid.
    """
    return PodGrants(
        _read_images(values.get(names["kubernetes_images"], "") or _ANY_IMAGE, names["kubernetes_images"]),
        _read_patterns(
            values.get(names["kubernetes_service_accounts"], ""),
            names["kubernetes_service_accounts"],
            _SERVICE_ACCOUNTS,
            "the name of a service account nor the beginning of one with * behind it, for example trainer",
        ),
        NodeLabels(
            _read_label_key(values, names["gpu_model_label"]),
            _read_label(values, names["spot_label"]),
            _read_label(values, names["on_demand_label"]),
        ),
    )


def _read_label_key(values: Mapping[str, str], name: str) -> str:
    key = values.get(name, "") or NodeLabels().gpu_model
    if re.fullmatch(_LABEL_KEY, key) is None:
        raise InvalidSettingsError(f"setting {name}: {key!r} is no key of a label, like nvidia.com/gpu.product")
    return key


def _read_label(values: Mapping[str, str], name: str) -> NodeLabel | None:
    text = values.get(name, "")
    key, _, value = text.partition("=")
    if not text:
        return None
    if re.fullmatch(_LABEL_KEY, key) is None or re.fullmatch(_LABEL_VALUE, value) is None:
        raise InvalidSettingsError(f"setting {name}: {text!r} is no label, like karpenter.sh/capacity-type=spot")
    return NodeLabel(key, value)


def _read_images(text: str, name: str) -> tuple[str, ...] | None:
    if text == _ANY_IMAGE:
        return None
    words = (
        "a repository of images with its registry nor the beginning of one with * behind it, for example "
        f"registry.example.com/team/*; {_ANY_IMAGE!r} alone stands for every image"
    )
    return tuple(_lower_registry(each) for each in _read_patterns(text, name, _IMAGES, words))


def _read_patterns(text: str, name: str, form: re.Pattern[str], words: str) -> tuple[str, ...]:
    patterns = split(text)
    for pattern in patterns:
        if form.fullmatch(pattern) is None:
            raise InvalidSettingsError(f"setting {name}: {pattern!r} is neither {words}")
    return patterns


def _lower_registry(pattern: str) -> str:
    registry, _, path = pattern.partition("/")
    return f"{registry.lower()}/{path}"
