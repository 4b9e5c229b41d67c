"""Clusters: each is signed in to by a role, or by a kubeconfig in a secret; and the labels of its nodes."""

import pytest

from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.kubernetes_settings import ClusterSettings, KubernetesSettings, read_pod_grants
from relaunch.setting_values import InvalidSettingsError

NAMES = {
    name: name
    for name in (
        *("ack_cluster_id", "ack_region", "ack_secret", "acs_cluster_id", "acs_region", "acs_secret"),
        *("alibaba_role", "alibaba_oidc_provider", "kubernetes_namespace", "oss_region"),
        *("kubernetes_images", "kubernetes_service_accounts", "kubernetes_cluster_id", "kubernetes_secret"),
        *("gpu_model_label", "spot_label", "on_demand_label"),
    )
}
ROLE = {"alibaba_role": "acs:ram::1:role/relaunch", "alibaba_oidc_provider": "acs:ram::1:oidc-provider/aws"}
ACK = {"ack_cluster_id": "c0123456789abcdef", "ack_region": "cn-beijing"}
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:acs-AbCdEf"


def read(**values):
    return KubernetesSettings.from_named(values, NAMES)


def test_a_stack_has_no_cluster_unless_it_names_one():
    assert read() == KubernetesSettings({}, "training")
    assert read(ack_region="cn-beijing", **ROLE).clusters == {}


def test_each_cluster_is_signed_in_to_in_its_own_way():
    settings = read(**ACK, **ROLE, acs_secret=SECRET, kubernetes_namespace="research")

    assert settings.clusters == {
        Target.ACK: ClusterSettings("c0123456789abcdef", "cn-beijing"),
        Target.ACS: ClusterSettings(kubeconfig_secret_arn=SECRET),
    }
    assert (settings.namespace, settings.role_arn) == ("research", "acs:ram::1:role/relaunch")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"kubernetes_cluster_id": "ml"}, ClusterSettings("ml")),
        ({"kubernetes_secret": SECRET}, ClusterSettings(kubeconfig_secret_arn=SECRET)),
    ],
)
def test_a_cluster_elsewhere_than_at_alibaba_cloud_needs_its_name_at_eks_or_a_secret(values, expected):
    assert read(**values).clusters == {Target.KUBERNETES: expected}


def test_the_labels_of_nodes_are_those_of_the_parameters():
    values = {"gpu_model_label": "cloud.google.com/gke-accelerator", "spot_label": "cloud.google.com/gke-spot=true"}

    assert read_pod_grants({}, NAMES).nodes == NodeLabels("nvidia.com/gpu.product", None, None)
    assert read_pod_grants({**values, "on_demand_label": "pool=a"}, NAMES).nodes == NodeLabels(
        "cloud.google.com/gke-accelerator", NodeLabel("cloud.google.com/gke-spot", "true"), NodeLabel("pool", "a")
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("gpu_model_label", "a b"),
        ("gpu_model_label", "a/b/c"),
        ("spot_label", "karpenter.sh/capacity-type"),
        ("spot_label", "=spot"),
        ("on_demand_label", "a=b=c"),
        ("on_demand_label", f"a={'b' * 64}"),
    ],
)
def test_labels_that_no_node_can_have_are_refused(name, written):
    with pytest.raises(InvalidSettingsError, match=f"setting {name}: .* is no (key of a )?label, like"):
        read_pod_grants({name: written}, NAMES)


@pytest.mark.parametrize("missing", ["ack_region", "alibaba_role", "alibaba_oidc_provider"])
def test_a_cluster_without_a_secret_needs_its_region_the_role_and_the_provider(missing):
    values = {name: value for name, value in {**ACK, **ROLE}.items() if name != missing}

    with pytest.raises(ValueError, match=f"setting {missing} is missing: ack_cluster_id needs .*, or ack_secret alone"):
        read(**values)


def test_a_namespace_is_a_label_of_rfc_1123():
    with pytest.raises(ValueError, match="setting kubernetes_namespace: 'Training' is no name of a namespace"):
        read(kubernetes_namespace="Training")


def test_checkpoints_in_oss_are_read_as_the_role():
    assert read(**ROLE, oss_region="cn-beijing").oss_region == "cn-beijing"
    for missing in ROLE:
        values = {name: value for name, value in ROLE.items() if name != missing}
        with pytest.raises(ValueError, match=f"setting {missing} is missing: oss_region needs it"):
            read(**values, oss_region="cn-beijing")


@pytest.mark.parametrize(
    ("images", "accounts", "grants"),
    [
        ("", "", PodGrants(None, ())),
        ("any", "trainer, train-*", PodGrants(None, ("trainer", "train-*"))),
        ("Registry.example.com/a/*,localhost:5000/b", "*a", None),
        ("Registry.example.com/a/*,localhost:5000/b", "", PodGrants(("registry.example.com/a/*", "localhost:5000/b"))),
    ],
)
def test_pods_have_any_image_and_no_service_account_of_their_choosing_unless_the_stack_says_so(
    images, accounts, grants
):
    values = {"kubernetes_images": images, "kubernetes_service_accounts": accounts}
    if grants is None:
        with pytest.raises(InvalidSettingsError, match=r"kubernetes_service_accounts: '\*a' is neither the name of"):
            read_pod_grants(values, NAMES)
    else:
        assert read_pod_grants(values, NAMES) == grants


@pytest.mark.parametrize("written", ["*", "acme/*", "registry.example.com*", "registry.example.com/a*b", "any,a.b/c d"])
def test_images_that_cannot_be_read_are_refused_with_the_form_they_must_have(written):
    with pytest.raises(InvalidSettingsError, match=r"kubernetes_images: .*registry.example.com/team/\*; 'any' alone"):
        read_pod_grants({"kubernetes_images": written}, NAMES)
