"""A deployment of all stacks: what it finds, in which order it makes it, and where it goes on after a failure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.change_set import read_stack
from relaunch_cli.deployment.deployment import Deployment, application_parameters, survey
from relaunch_cli.deployment.findings import Stack, Survey
from relaunch_cli.deployment.github_repository import RepositoryIds
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source


@dataclass
class FakeSam:
    """Takes the place of `make build` and SAM CLI; `failure` is what the next deployment fails with."""

    stacks: FakeStacks
    log: list[str]
    failure: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def build(self) -> Mapping[str, str]:
        self.log.append("build")
        return {"Runtime": "python3.13", "Architecture": "x86_64"}

    def create(self, stack: str, parameters: Mapping[str, str], _stacks: Any) -> None:
        self._deploy("create", stack, parameters)

    def update(self, stack: str, parameters: Mapping[str, str], *, is_confirmed: bool) -> None:
        self._deploy("update", stack, parameters)

    def _deploy(self, verb: str, stack: str, parameters: Mapping[str, str]) -> None:
        self.log.append(f"{verb} {stack}")
        if self.failure:
            failure, self.failure = self.failure, ""
            raise RefusedError(failure)
        self.parameters = parameters
        self.stacks.have(stack, "CREATE_COMPLETE", **parameters)


class FakeQuotas:
    """Service Quotas of a new account, which moto has not: every quota is 0, and requests are taken."""

    def __init__(self) -> None:
        self.requested: list[Mapping[str, Any]] = []

    def get_service_quota(self, **request: str) -> Mapping[str, Any]:
        return {"Quota": {"QuotaCode": request["QuotaCode"], "Value": 0.0}}

    def get_paginator(self, _operation: str) -> "FakeQuotas":
        return self

    def paginate(self, **request: str) -> list[Mapping[str, Any]]:
        return [{"RequestedQuotas": self.requested if request["Status"] == "PENDING" else []}]

    def request_service_quota_increase(self, **request: Any) -> None:
        self.requested.append({"QuotaCode": request["QuotaCode"], "DesiredValue": request["DesiredValue"]})


class FakeAccount:
    """An account in process (moto), whose stacks are fakes."""

    region = "us-east-1"
    id = "111122223333"

    def __init__(self) -> None:
        self.stacks = FakeStacks()
        self.log: list[str] = []
        self.sam = FakeSam(self.stacks, self.log)
        self.questions: list[str] = []
        self.answer = True
        self.quotas = FakeQuotas()

    def client(self, service: str) -> Any:
        fakes = {"cloudformation": self.stacks, "service-quotas": self.quotas}
        return fakes.get(service) or make_client(service)

    def survey(self, **given: str) -> Survey:
        return survey("relaunch", given, self, lambda _: RepositoryIds("11", "22"))

    def deploy(self, **given: str) -> list[str]:
        """Deploy as `relaunch deploy` does."""
        plan = self.survey(**given)
        running = Deployment(
            self,
            find_source(),
            self.sam,  # type: ignore[arg-type]
            self._confirm,
            self.log.append,
            sleep=lambda seconds: self.log.append(f"pause {seconds:.0f}"),
        )
        return list(running.run(plan))

    def _confirm(self, question: str) -> bool:
        self.questions.append(question)
        return self.answer

    def parameters(self, stack: str) -> Mapping[str, str]:
        found = read_stack(stack, self.stacks)
        assert found is not None
        return found.parameters


@pytest.fixture
def account() -> Iterator[FakeAccount]:
    with aws_in_process():
        account = FakeAccount()
        vpc = make_client("ec2").describe_vpcs()["Vpcs"][0]["VpcId"]
        account.stacks.more_outputs = {
            "relaunch-training": {
                "ClusterName": "relaunch",
                "VpcId": vpc,
                "CheckpointBucketName": "relaunch-training-checkpoints",
            }
        }
        # The fake makes no resources.
        make_client("ecs").create_cluster(clusterName="relaunch")
        yield account


def test_the_stacks_are_made_in_the_order_in_which_they_need_each_other(account: FakeAccount) -> None:
    told = account.deploy(ExistingCluster="false")

    order = [each for each in account.log if each.startswith(("build", "create", "made ", "pause"))]
    assert order == [
        "made the service-linked role of ecs.amazonaws.com",
        "made the service-linked role of spot.amazonaws.com",
        "build",
        "pause 10",
        "create relaunch",
    ]
    assert list(account.stacks.stacks) == ["relaunch-training", "relaunch-machines", "relaunch"]
    assert account.sam.parameters["ClusterName"] == "relaunch"
    assert account.sam.parameters["CheckpointBuckets"] == "relaunch-training-checkpoints"
    assert account.sam.parameters["MachineSubnets"].startswith("us-east-1a=subnet-")
    assert account.sam.parameters["Runtime"] == "python3.13"
    # What was shown was confirmed: new stacks are not asked about again.
    assert account.questions == []
    assert all(line.startswith("requested 8 vCPUs of") for line in told)


def test_a_deployment_that_failed_goes_on_where_it_failed(account: FakeAccount) -> None:
    account.sam.failure = "the stack relaunch was not deployed: no room"
    with pytest.raises(RefusedError, match="no room"):
        account.deploy()
    assert set(account.stacks.stacks) == {"relaunch-training", "relaunch-machines"}
    version = account.stacks.stacks["relaunch-training"].version
    account.log.clear()

    account.deploy()

    assert account.log.count("create relaunch") == 1
    assert "relaunch-training: no change" in account.log
    assert account.stacks.stacks["relaunch-training"].version == version


def test_again_it_updates_and_asks_only_about_changes(account: FakeAccount) -> None:
    account.deploy()
    account.log.clear()
    account.deploy(MaxMachines="5")

    assert account.log[-1] == "update relaunch"
    assert account.questions == []
    account.deploy(RepositoryName="vision")
    assert account.questions == ["Deploy the stack relaunch-training?"]


def test_a_change_that_is_not_confirmed_ends_the_deployment(account: FakeAccount) -> None:
    account.deploy()
    account.log.clear()
    account.answer = False
    with pytest.raises(RefusedError, match="were not confirmed"):
        account.deploy(RepositoryName="vision")

    assert "update relaunch" not in account.log


def test_a_stack_that_cannot_be_updated_is_told_before_anything_is_made(account: FakeAccount) -> None:
    account.stacks.have("relaunch", "ROLLBACK_COMPLETE")
    with pytest.raises(RefusedError, match="aws cloudformation delete-stack --stack-name relaunch"):
        account.deploy()

    assert account.log == []


def test_a_stack_of_somebody_else_with_this_name_is_refused(account: FakeAccount) -> None:
    account.stacks.more_outputs.clear()
    with pytest.raises(RefusedError, match="has no output ClusterName, VpcId, CheckpointBucketName: it is another one"):
        account.deploy()


def test_a_repository_on_github_gets_a_provider_and_its_numbers(account: FakeAccount) -> None:
    plan = account.survey(GitHubRepository="acme/vision")
    assert plan.needs_github_provider
    account.deploy(GitHubRepository="acme/vision")

    made = account.parameters("relaunch-training")
    assert (made["GitHubOwnerId"], made["GitHubRepositoryId"]) == ("11", "22")
    assert made["GitHubOidcProviderArn"].endswith("token.actions.githubusercontent.com")
    assert not account.survey(GitHubRepository="acme/vision").needs_github_provider


def test_another_repository_has_other_numbers(account: FakeAccount) -> None:
    account.deploy(GitHubRepository="acme/vision", GitHubOwnerId="1", GitHubRepositoryId="2")
    kept, other = account.survey().training, account.survey(GitHubRepository="acme/speech").training

    assert kept is not None
    assert other is not None
    assert (kept["GitHubOwnerId"], kept["GitHubRepositoryId"]) == ("1", "2")
    assert (other["GitHubOwnerId"], other["GitHubRepositoryId"]) == ("11", "22")


def test_quotas_are_requested_once_also_if_the_rest_fails(account: FakeAccount) -> None:
    account.sam.failure = "no room"
    with pytest.raises(RefusedError, match="no room"):
        account.deploy()
    account.deploy()

    assert [each["QuotaCode"] for each in account.quotas.requested] == ["L-DB2E81BA", "L-3819A6DF"]


@pytest.mark.parametrize("name", ["acme/..", "acme/x?per_page=1", "acme", "https://github.com/acme/vision"])
def test_what_is_no_name_of_a_repository_is_not_asked_about(account: FakeAccount, name: str) -> None:
    with pytest.raises(RefusedError, match="is no repository at GitHub: write it like OWNER/NAME"):
        survey("relaunch", {"GitHubRepository": name}, account, pytest.fail)


def test_github_that_does_not_answer_is_told(account: FakeAccount) -> None:
    plan = survey("relaunch", {"GitHubRepository": "acme/vision"}, account, lambda _: None)

    (note,) = plan.notes[-1:]
    assert "GitHub does not tell the numbers of acme/vision" in note
    assert plan.training is not None
    assert "GitHubRepositoryId" not in plan.training


def test_without_what_trainings_need_the_account_must_have_a_cluster(account: FakeAccount) -> None:
    account.deploy(Training="off", ClusterName="relaunch")

    assert set(account.stacks.stacks) == {"relaunch-machines", "relaunch"}
    with pytest.raises(RefusedError, match="the ECS cluster other does not exist"):
        account.deploy(ClusterName="other")


OUTPUTS = {
    "ClusterName": "training",
    "VpcId": "vpc-0a",
    "MachineSubnets": "us-east-1a=subnet-0a",
    "CheckpointBucketName": "made",
}


class TestApplicationParameters:
    def test_outputs_are_handed_on(self) -> None:
        assert application_parameters({}, None, OUTPUTS) == {
            "ClusterName": "training",
            "MachineSubnets": "us-east-1a=subnet-0a",
            "CheckpointBuckets": "made",
        }

    def test_of_a_vpc_that_exists_the_subnets_are_looked_for(self) -> None:
        outputs = {name: value for name, value in OUTPUTS.items() if name != "MachineSubnets"}

        assert application_parameters({}, None, outputs)["VpcId"] == "vpc-0a"

    def test_the_network_of_an_application_is_kept(self) -> None:
        before = Stack("relaunch", "CREATE_COMPLETE", {"MachineSubnets": "us-east-1b=subnet-0b"})

        assert "MachineSubnets" not in application_parameters({}, before, OUTPUTS)

    def test_without_machines_there_is_no_network(self) -> None:
        assert "MachineSubnets" not in application_parameters({"Machines": "off"}, None, OUTPUTS)

    def test_buckets_that_are_named_stay_and_none_comes_twice(self) -> None:
        named = application_parameters({"CheckpointBuckets": "mine"}, None, OUTPUTS)
        before = Stack("relaunch", "CREATE_COMPLETE", {"CheckpointBuckets": "mine,made"})

        assert named["CheckpointBuckets"] == "mine,made"
        assert application_parameters({}, before, OUTPUTS)["CheckpointBuckets"] == "mine,made"
