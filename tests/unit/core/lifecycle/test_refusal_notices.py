"""What to grant, from the words of an error."""

import pytest

from relaunch.core.lifecycle.refusal_notices import what_to_grant

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
            "infrastructure/kubernetes/role.yaml`",
        ),
        (
            'nodes is forbidden: User "relaunch" cannot list resource "nodes" in API group ""',
            "let relaunch list nodes: `kubectl apply -f infrastructure/kubernetes/role.yaml`",
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
