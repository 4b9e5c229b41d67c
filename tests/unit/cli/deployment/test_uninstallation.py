"""A deployment is removed in an order in which nothing is left running, and what is kept is told."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.provider_groups import FakeProviderGroup
from fakes.receivers import FakeReceivers
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.uninstallation import Uninstallation, is_complete


class Draining:
    """A job that is submitted meanwhile, and a machine, which are gone after some polls, and the rules of triggers."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self.jobs = self.machines = self
        self.asked = 0
        self.removed: list[str] = []

    def load_open(self, _limit: int) -> list[str]:
        self.asked += 1
        return [] if self.asked == 1 or self.asked > self.polls else ["demo-1"]

    def load_living(self, _limit: int) -> list[str]:
        return [] if self.asked > self.polls else ["m-1"]

    def list_rules(self) -> list[Any]:
        assert self.asked > self.polls, "rules are removed while jobs are open"
        return [type("Rule", (), {"name": "relaunch-relaunch-a1"})]

    def remove_rule(self, name: str) -> None:
        self.removed.append(name)


def removal(lines: list[str], pauses: list[float]) -> Uninstallation:
    return Uninstallation("relaunch", pytest.fail, lines.append, pauses.append)


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    job_ids: list[str] = []
    monkeypatch.setattr("relaunch_cli.deployment.uninstallation.cancel_job", lambda job_id, *_: job_ids.append(job_id))
    return job_ids


def test_rules_are_removed_after_the_last_job_and_machine(cancelled: list[str]) -> None:
    lines: list[str] = []
    pauses: list[float] = []
    draining = Draining(polls=3)
    removing = removal(lines, pauses)
    removing.drain(draining)  # type: ignore[arg-type]
    removing.remove_rules(draining)  # type: ignore[arg-type]

    assert draining.removed == ["relaunch-relaunch-a1"]
    assert len(pauses) == 3
    assert cancelled == ["demo-1"]
    assert lines == [
        "waiting for 1: machine m-1",
        "cancelled demo-1",
        "waiting for 2: job demo-1 …",
        "removed the rule relaunch-relaunch-a1",
    ]


PROVIDER = "relaunch-g5-xlarge-spot"


def with_provider(name: str = PROVIDER) -> FakeStacks:
    stacks = FakeStacks()
    shown = {"InstanceType": "g5.xlarge", "Purchase": "spot", "ClusterName": "training"}
    stacks.have(name, ProviderName=name, **shown)
    stacks.have("relaunch-machines", IdleMinutes="20")
    stacks.have("relaunch")
    return stacks


def removal_of(stacks: FakeStacks, group: FakeProviderGroup, lines: list[str], pauses: list[float]) -> Uninstallation:
    clients = {"cloudformation": stacks, "ecs": group, "autoscaling": group, "ec2": group}
    return Uninstallation("relaunch", clients.__getitem__, lines.append, pauses.append)


@pytest.mark.usefixtures("cancelled")
def test_an_application_ends_with_the_machines_of_its_providers_before_its_rules_are_removed() -> None:
    functions = FakeReceivers()
    stacks = with_provider()
    stacks.describe_stack_resource = functions.describe_stack_resource  # type: ignore[method-assign]
    group = FakeProviderGroup(PROVIDER, lives=10_000)
    stacks.barrier = group.barrier
    clients = {"cloudformation": stacks, "lambda": functions, **dict.fromkeys(("ecs", "autoscaling", "ec2"), group)}
    removing = Uninstallation("relaunch", clients.__getitem__, [].append, [].append)
    draining = Draining(polls=0)

    def end() -> None:
        removing.end_application(removing.find_stacks(), draining, draining)  # type: ignore[arg-type]

    with pytest.raises(RefusedError, match="there still is machine i-0a"):
        end()
    assert (set(functions.reserved.values()), draining.removed) == ({0}, [])

    group.lives = 0
    end()
    assert draining.removed == ["relaunch-relaunch-a1"]
    assert list(stacks.stacks) == ["relaunch-machines", "relaunch"]


def test_machines_of_capacity_providers_end_before_anything_is_deleted() -> None:
    stacks = with_provider()
    group = FakeProviderGroup(PROVIDER, lives=3, busy=1)
    stacks.barrier = group.barrier
    lines: list[str] = []
    pauses: list[float] = []
    removal = removal_of(stacks, group, lines, pauses)
    removal.delete(removal.find_stacks())

    assert stacks.stacks == {}
    assert group.providers == ["mine"]
    assert group.calls == ["PutClusterCapacityProviders", *["DeleteAutoScalingGroup"] * 2]
    assert lines[:4] == [
        f"deleting the stack {PROVIDER}",
        f"waiting for 2: group {PROVIDER} …",
        "waiting for 1: machine i-0a",
        "deleting the stack relaunch",
    ]


def test_a_machine_of_a_capacity_provider_that_does_not_end_keeps_all_stacks_and_is_found_again() -> None:
    stacks = with_provider()
    group = FakeProviderGroup(PROVIDER, lives=10_000)
    pauses: list[float] = []
    removal = removal_of(stacks, group, [], pauses)
    with pytest.raises(RefusedError, match=r"15 minutes there still is machine i-0a: .*; see the console of EC2 Auto"):
        removal.delete(removal.find_stacks())
    assert sum(pauses) == 900
    assert [each.name for each in removal.find_stacks()] == [PROVIDER, "relaunch", "relaunch-machines"]

    # As a release before left it: the application is gone, the provider's stack failed, and the cluster is gone too.
    del stacks.stacks["relaunch"]
    stacks.stacks[PROVIDER].status = "DELETE_FAILED"
    group.lives = 0
    group.describe_clusters = lambda **_: {"clusters": [{"status": "INACTIVE"}]}  # type: ignore[method-assign]
    removal.delete(removal.find_stacks())

    assert stacks.stacks == {}


def test_a_stack_that_has_the_name_of_a_capacity_provider_and_is_none_is_left_alone() -> None:
    stacks = with_provider("relaunch-vision-g5-xlarge-spot")
    stacks.have(PROVIDER, InstanceType="g5.xlarge", Purchase="spot")

    found = removal_of(stacks, FakeProviderGroup(PROVIDER), [], []).find_stacks()

    assert [each.name for each in found] == ["relaunch", "relaunch-machines"]


def test_the_roles_of_trainings_are_removed_with_their_application_and_with_no_other() -> None:
    stacks = FakeStacks()
    for name, application, training in (
        ("relaunch-training-vision", "relaunch", "vision"),
        ("other-training-vision", "other", "vision"),
    ):
        stacks.have(name, ApplicationStack=application, TrainingName=training)
    for name in ("relaunch", "relaunch-training", "relaunch-machines", "relaunch-training-x"):
        stacks.have(name, ClusterName="relaunch")

    found = Uninstallation("relaunch", lambda _service: stacks, [].append, pytest.fail).find_stacks()

    assert [each.name for each in found] == [
        *("relaunch", "relaunch-machines", "relaunch-training", "relaunch-training-vision"),
    ]


def test_a_function_that_may_not_be_looked_up_is_not_taken_for_one_that_is_not_there() -> None:
    functions = FakeReceivers("AccessDenied")
    with pytest.raises(ClientError, match="AccessDenied"):
        Uninstallation("relaunch", lambda _service: functions, pytest.fail, pytest.fail).close()

    assert functions.reserved == {}


@pytest.mark.usefixtures("cancelled")
def test_what_does_not_end_is_told_and_nothing_is_deleted() -> None:
    pauses: list[float] = []
    draining = Draining(polls=10_000)
    with pytest.raises(RefusedError, match="after 15 minutes there still is job demo-1, machine m-1: nothing more was"):
        removal([], pauses).drain(draining)  # type: ignore[arg-type]

    assert sum(pauses) == 900
    assert draining.removed == []


@pytest.mark.parametrize(
    ("status", "is_working"),
    [
        ("CREATE_COMPLETE", True),
        ("UPDATE_ROLLBACK_COMPLETE", True),
        ("DELETE_FAILED", False),
        ("ROLLBACK_COMPLETE", False),
    ],
)
def test_only_an_application_that_works_ends_its_jobs(status: str, *, is_working: bool) -> None:
    assert is_complete(Stack("relaunch", status, {}, {"TableName": "t"})) is is_working
    assert not is_complete(Stack("relaunch", status))
