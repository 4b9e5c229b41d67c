"""The doctor of the local world is silent about what that world does not have."""

from types import SimpleNamespace

import pytest

from relaunch.core.checks import is_ok, problem, unknown
from relaunch_cli.account_checks.images import PARAMETER_PREFIX, TemplateFacts, check_launch_template
from relaunch_cli.account_checks.local_gaps import without_gaps
from relaunch_cli.commands import doctor


@pytest.mark.parametrize(
    "gap",
    [
        unknown("launch template gpu", "ec2:DescribeLaunchTemplateVersions: InvalidAction", "try again"),
        unknown("vCPU quotas", "servicequotas:GetServiceQuota: UnknownOperationException", "try again"),
        problem("Lambda concurrency", "others can keep spot warnings and GitHub waiting", "relaunch deploy"),
        check_launch_template("gpu", "lt-1:1", TemplateFacts(exists=True, image=f"{PARAMETER_PREFIX}/aws/service/a")),
    ],
    ids=lambda check: check.name,
)
def test_what_the_local_world_does_not_answer_is_left_out_and_named(gap):
    kept = is_ok("cluster relaunch", "ACTIVE")

    found = without_gaps([kept, gap])

    assert found.checks == [kept]
    assert found.left_out == [gap.name]


@pytest.mark.parametrize(
    "check",
    [
        is_ok("Lambda concurrency", "1000, of which 970 are unreserved"),
        problem("alarms", "one is in ALARM", "relaunch machines"),
        check_launch_template("gpu", "lt-1:1", TemplateFacts(exists=False)),
        unknown("alarms", "you have no permission cloudwatch:DescribeAlarms", "grant it"),
        unknown("alarms", "AWS does not answer", "try again"),
    ],
    ids=["ok", "problem", "no template", "denied", "silent"],
)
def test_what_is_wrong_in_it_is_told_as_on_aws(check):
    assert without_gaps([check]).checks == [check]


@pytest.mark.parametrize(
    ("endpoint", "count"), [("http://127.0.0.1:4566", 1), ("https://ecs.us-east-1.amazonaws.com", 2)]
)
def test_the_doctor_leaves_them_out_in_a_local_world_alone(monkeypatch, endpoint, count):
    found = [
        is_ok("cluster relaunch", "ACTIVE"),
        problem("Lambda concurrency", "others can keep spot warnings and GitHub waiting", "deploy"),
    ]
    monkeypatch.setattr("relaunch_cli.commands.doctor.make_checks", lambda _: found)
    monkeypatch.setattr(doctor, "_check_stack", lambda *_: [])
    ecs = SimpleNamespace(meta=SimpleNamespace(endpoint_url=endpoint))
    connection = SimpleNamespace(caller="", account=SimpleNamespace(client=lambda _: ecs))

    assert len(doctor._check_account(connection, "relaunch")) == count
