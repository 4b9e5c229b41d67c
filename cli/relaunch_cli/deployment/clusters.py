"""What a change of the stack's clusters does to the jobs that run there."""

from collections.abc import Iterator, Mapping

_BY_TARGET = {
    "kubernetes": ("EksClusterName", "KubernetesKubeconfigSecretArn", "KubernetesNamespace"),
    "ACK": ("AckClusterId", "AckRegion", "AckKubeconfigSecretArn", "KubernetesNamespace"),
    "ACS": ("AcsClusterId", "AcsRegion", "AcsKubeconfigSecretArn", "KubernetesNamespace"),
}


def changed_clusters(given: Mapping[str, str], before: Mapping[str, str]) -> Iterator[str]:
    """Yield what to know before the cluster or the namespace of a target that the stack has is changed."""
    if before.get("ClusterName") and given.get("ClusterName", before["ClusterName"]) != before["ClusterName"]:
        yield (
            f"ClusterName changes: tasks of jobs on ECS go on in {before['ClusterName']}, and Relaunch can neither see "
            "nor stop them there. Wait until `relaunch ps` lists no job on ECS, or cancel those"
        )
    for target, names in _BY_TARGET.items():
        has_cluster = any(before.get(name) for name in names[:-1])
        changed = [name for name in names if name in given and given[name] != before.get(name, "")]
        if has_cluster and changed:
            yield (
                f"{', '.join(changed)} changes: pods of jobs on {target} go on where they are, and Relaunch can stop "
                "them there no more; such a job waits for a day (`relaunch explain JOB`). Wait until `relaunch ps` "
                f"lists no job on {target}, or cancel those"
            )
