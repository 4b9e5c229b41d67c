"""What to grant, from the words of an error."""

import pytest

from fakes.builders import NOW, make_definition, make_job
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.state import Refusal, RefusedCall
from relaunch.core.lifecycle.refusal_waits import what_lets_pods_in, what_to_grant, what_to_look_at

ACCOUNT = "arn:aws:sts::111122223333:assumed-role/relaunch-LaunchAttemptRole-1A2B/relaunch-launch-attempt"


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (
            f"User: {ACCOUNT} is not authorized to perform: ecs:RunTask on resource: "
            "arn:aws:ecs:eu-central-1:111122223333:task-definition/trainer:7 because no policy allows it",
            "grant the role relaunch-LaunchAttemptRole-1A2B ecs:RunTask on "
            "arn:aws:ecs:eu-central-1:111122223333:task-definition/trainer:7: template.yaml does, so deploy again or "
            "see what took it away",
        ),
        (
            "User: ada is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::MAX.",
            "grant ada s3:GetObject on arn:aws:s3:::MAX: template.yaml does, so deploy again or see what took it away",
        ),
        (
            "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: ecs:RunTask",
            "grant arn:aws:iam::111122223333:user/ada ecs:RunTask: template.yaml does, so deploy again or see what "
            "took it away",
        ),
        (
            f"User: {ACCOUNT} is not authorized to perform: iam:PassRole on resource: r with an explicit deny in a "
            "service control policy",
            "something denies the role relaunch-LaunchAttemptRole-1A2B iam:PassRole on r explicitly, which no grant "
            "overrides: lift that",
        ),
        (
            'jobs.batch is forbidden: User "system:serviceaccount:training:relaunch" cannot create resource "jobs" in '
            'API group "batch" in the namespace "training" (HTTP 403 Forbidden)',
            "let system:serviceaccount:training:relaunch create jobs in the namespace training: `kubectl apply -f "
            "infrastructure/kubernetes/role.yaml` with this whole name in it",
        ),
        (
            'nodes is forbidden: User "relaunch" cannot list resource "nodes" in API group ""',
            "let relaunch list nodes: `kubectl apply -f infrastructure/kubernetes/role.yaml` with this whole name in "
            "it",
        ),
        (
            'jobs.batch is forbidden: User "300000000000000000-1676970192" cannot create resource "jobs" in API group ',
            "let 300000000000000000-1676970192 create jobs: `kubectl apply -f infrastructure/kubernetes/role.yaml` "
            "with this whole name in it",
        ),
        (
            'namespaces "training" not found (HTTP 404 NotFound)',
            "`kubectl create namespace training`, and apply infrastructure/kubernetes/role.yaml",
        ),
    ],
)
def test_the_words_of_an_error_say_what_to_grant_to_whom(reason: str, advice: str) -> None:
    first, *others = what_to_grant(reason)

    assert first == advice
    assert len(others) == 1


@pytest.mark.parametrize("reason", ["creating Job a: Unauthorized (HTTP 401)", "kubeconfig: it is not valid YAML"])
def test_credentials_that_are_not_taken_are_renewed(reason: str) -> None:
    assert "`--duration`" in what_to_grant(reason)[0]


def test_other_words_are_left_to_the_doctor() -> None:
    (only,) = what_to_grant("ClusterNotFoundException: Cluster not found.")

    assert "relaunch doctor" in only


TASK_ROLE = "arn:aws:sts::111122223333:assumed-role/train-execution/3f0c"


def advice_on_a_start(reason: str, **definition) -> tuple[str, ...]:
    refusals = {RefusedCall.START: Refusal(NOW, NOW)}
    return what_to_look_at(make_job(refusals=refusals, definition=make_definition(**definition)), reason)


def test_what_a_start_lacks_is_granted_to_the_roles_of_the_task_not_by_the_stack() -> None:
    denied = f"AccessDeniedException: User: {TASK_ROLE} is not authorized to perform: secretsmanager:GetSecretValue on"
    grant, whose, at_once = advice_on_a_start(f"{denied} resource: arn:x because no identity-based policy allows it")

    assert grant == "grant the role train-execution secretsmanager:GetSecretValue on arn:x"
    assert "executionRoleArn" in whose
    assert "`relaunch retry`" in at_once
    denial, *_ = advice_on_a_start(f"{denied} resource: arn:x with an explicit deny in a resource-based policy")
    assert denial.startswith("something denies the role train-execution secretsmanager:GetSecretValue on arn:x")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("ECS was unable to assume the role 'arn:aws:iam::1:role/x'", "assume the role"),
        ("CannotPullContainerError: no basic auth credentials", "ecr:BatchGetImage"),
        ("CannotPullECRContainerError: engine ecr credentials: not found", "ecr:BatchGetImage"),
        ("DockerTimeoutError: Could not transition; 3 machines in a row did not start it", "have in common"),
    ],
)
def test_a_start_that_is_refused_says_what_to_do(reason: str, words: str) -> None:
    first, at_once = advice_on_a_start(reason)

    assert words in first
    assert "next probe" in at_once


def test_a_pod_that_does_not_start_is_described_by_its_cluster() -> None:
    first, _ = advice_on_a_start("ErrImagePull", target=Target.ACK)

    assert "kubectl describe pod" in first


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("exceeded quota: gpus, requested: pods=1", "raise the ResourceQuota gpus, or wait until others"),
        ('serviceaccount "trainer" not found', "`kubectl create serviceaccount trainer` in the namespace, or name"),
        ("no PriorityClass with name gold was found", "create the PriorityClass gold"),
        ('failed calling webhook "a.b": no endpoints', "the webhook a.b does not answer: see to it"),
        ("something else", "`kubectl describe job` has the cluster's words"),
    ],
)
def test_the_words_of_a_refused_pod_say_what_lets_it_in(reason: str, advice: str) -> None:
    first, *others = what_lets_pods_in(f"FailedCreate: Error creating: pods is forbidden: {reason}")

    assert first.startswith(advice)
    assert len(others) == (reason != "something else")
