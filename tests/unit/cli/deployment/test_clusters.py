"""Notes of `relaunch deploy` about clusters that are changed."""

import pytest

from relaunch_cli.deployment.clusters import changed_clusters

BEFORE = {"AckClusterId": "c1", "AckRegion": "cn-beijing", "KubernetesNamespace": "training"}


@pytest.mark.parametrize(
    ("given", "before", "said"),
    [
        ({"AckClusterId": "c2"}, BEFORE, "AckClusterId changes: pods of jobs on ACK go on where they are"),
        ({"AckClusterId": "c1", "KubernetesNamespace": "other"}, BEFORE, "KubernetesNamespace changes"),
        ({"AckClusterId": ""}, BEFORE, "AckClusterId changes"),
        ({"AckClusterId": "c1", "AcsClusterId": "c9"}, BEFORE, ""),
        ({"AckClusterId": "c1"}, {}, ""),
        ({"EksClusterName": "b"}, {"EksClusterName": "a"}, "EksClusterName changes: pods of jobs on kubernetes go on"),
        (
            {"ClusterName": "b"},
            {"ClusterName": "a"},
            "ClusterName changes: tasks of jobs on ECS go on in a",
        ),
        ({"ClusterName": "a"}, {"ClusterName": "a"}, ""),
        ({"ClusterName": "b"}, {}, ""),
    ],
)
def test_a_change_of_a_cluster_that_the_stack_has_is_said_with_what_follows(
    given: dict[str, str], before: dict[str, str], said: str
) -> None:
    assert "\n".join(changed_clusters(given, before)).startswith(said)
    assert bool(list(changed_clusters(given, before))) is bool(said)
