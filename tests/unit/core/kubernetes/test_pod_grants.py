"""What the parameters of a stack let its pods have."""

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.grant_problems import find_grant_problems
from relaunch.core.kubernetes.pod_grants import PodGrants

TEAM = "registry.example.com/team/"
DIGEST = f"sha256:{'0' * 64}"


def refused(grants, *, image="registry.example.com/team/trainer:1", service_account="", pod_image="", pod=None):
    workload = KubernetesWorkload(image, service_account=service_account, pod=pod or {})
    definition = make_definition(target=Target.ACK, kubernetes=workload)
    return {each.key[-1]: str(each) for each in find_grant_problems(definition, grants, pod_image)}


@pytest.mark.parametrize("image", ["trainer", "evil.example/x:1", "not/../an image"])
def test_every_image_is_allowed_unless_the_stack_names_some(image):
    assert refused(PodGrants(), image=image) == {}


@pytest.mark.parametrize(
    ("patterns", "image", "is_allowed"),
    [
        ((f"{TEAM}*",), f"{TEAM}trainer:1", True),
        ((f"{TEAM}*",), f"{TEAM}trainer@{DIGEST}", True),
        ((f"{TEAM}*",), f"{TEAM}a/b", True),
        ((f"{TEAM}*",), "registry.example.com/teams/trainer", False),
        ((f"{TEAM}*",), "registry.example.com.evil.example/team/trainer", False),
        ((f"{TEAM}*",), "evil.example/registry.example.com/team/trainer", False),
        ((f"{TEAM}*",), f"{TEAM}../other/trainer", False),
        ((f"{TEAM}*",), "team/trainer", False),
        ((f"{TEAM}trainer",), f"{TEAM}trainer:2", True),
        ((f"{TEAM}trainer",), f"{TEAM}trainer-2", False),
        (("docker.io/acme/*", f"{TEAM}*"), "acme/trainer", True),
        (("docker.io/library/*",), "python:3.11", True),
        (("docker.io/acme/*",), "docker.io.evil.example/acme/trainer", False),
        ((), f"{TEAM}trainer", False),
    ],
)
def test_an_image_is_allowed_by_its_registry_and_repository(patterns, image, is_allowed):
    assert (refused(PodGrants(images=patterns), image=image) == {}) is is_allowed


def test_the_image_that_a_job_gets_counts_instead_of_that_of_its_definition():
    grants = PodGrants(images=(f"{TEAM}*",))

    assert refused(PodGrants(images=("a/b", "c/d")))["image"].endswith(
        " has a/b, c/d; push the image to such a repository, or change the parameter of the stack"
    )
    assert " has none; push" in refused(PodGrants(images=()))["image"]
    assert refused(grants, pod_image=f"evil.example/x@{DIGEST}") == {
        "image": f"the stack may not run the image evil.example/x@{DIGEST}: its parameter KubernetesImages has "
        f"{TEAM}*; push the image to such a repository, or change the parameter of the stack"
    }


@pytest.mark.parametrize("containers", [[{"image": "evil.example/x"}, {"image": f"{TEAM}sync"}], [{}]])
def test_an_init_container_has_an_image_that_is_allowed_too(containers):
    found = refused(PodGrants(images=(f"{TEAM}*",)), pod={"spec": {"initContainers": containers}})

    assert list(found) == ["pod"]
    assert f"may not run the image {containers[0].get('image', '')}: its parameter KubernetesImages" in found["pod"]


@pytest.mark.parametrize("pod", [{"spec": []}, {"spec": {"initContainers": {}}}, {"spec": {"initContainers": ["x"]}}])
def test_what_is_no_container_has_no_image(pod):
    assert refused(PodGrants(images=(f"{TEAM}*",)), pod=pod) == {}


@pytest.mark.parametrize(
    ("accounts", "account", "is_allowed"),
    [
        ((), "", True),
        ((), "trainer", False),
        (("trainer",), "trainer", True),
        (("trainer",), "trainer-2", False),
        (("train-*", "other"), "train-a", True),
        (("train-*",), "cluster-admin-sa", False),
        (("*",), "default", True),
    ],
)
def test_a_service_account_is_one_that_the_stack_names(accounts, account, is_allowed):
    assert (refused(PodGrants(service_accounts=accounts), service_account=account) == {}) is is_allowed


def test_without_any_the_refusal_says_so_and_what_to_do():
    assert refused(PodGrants(), service_account="cluster-admin-sa") == {
        "service_account": "the stack may not give pods the service account cluster-admin-sa: its parameter "
        "KubernetesServiceAccounts has none; leave `service_account` out, or change the parameter of the stack"
    }
    named = refused(PodGrants(service_accounts=("a", "b-*")), service_account="c")["service_account"]
    assert ": its parameter KubernetesServiceAccounts has a, b-*; leave" in named


def test_a_task_on_ecs_is_no_pod():
    definition = make_definition(kubernetes=KubernetesWorkload("evil.example/x", service_account="admin"))

    assert find_grant_problems(definition, PodGrants(())) == ()
    assert find_grant_problems(make_definition(target=Target.ACK), PodGrants(())) == ()
