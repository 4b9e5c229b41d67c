"""What a workload gives its container in other places than keys of their own."""

import pytest

from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, SecretKey


def fragment(**members: object) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "main", **members}]}}


def test_variables_are_those_of_secrets_and_of_the_fragment() -> None:
    pod = fragment(env=[{"name": "B", "value": "1"}, {"name": "C", "valueFrom": {}}])

    assert KubernetesWorkload("t").own_variables == frozenset()
    assert KubernetesWorkload("t", secrets={"A": SecretKey("a", "b")}, pod=pod).own_variables == {"A", "B", "C"}


@pytest.mark.parametrize(
    "pod", [{"spec": []}, {"spec": {"containers": "main"}}, fragment(env="B"), fragment(env=["B"])]
)
def test_what_has_no_such_shape_says_nothing(pod: dict[str, object]) -> None:
    assert KubernetesWorkload("t", pod=pod).own_variables == frozenset()
