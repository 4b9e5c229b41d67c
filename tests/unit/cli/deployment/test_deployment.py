"""A deployment of all stacks: what it finds, in which order it makes it, and where it goes on after a failure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.change_set import read_stack
from relaunch_cli.deployment.deployment import Deployment, application_parameters, survey
from relaunch_cli.deployment.findings import QuotaRequests, Stack, Survey
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

    def update(self, stack: str, parameters: Mapping[str, str], _stacks: Any, *, is_confirmed: bool) -> None:
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
        self.stack = "relaunch"
        self.stacks = FakeStacks()
        self.log: list[str] = []
        self.sam = FakeSam(self.stacks, self.log)
        self.questions: list[str] = []
        self.answer = True
        self.quotas = FakeQuotas()

    def client(self, service: str) -> Any:
        fakes = {"cloudformation": self.stacks, "service-quotas": self.quotas}
        return fakes.get(service) or make_client(service)

    def survey(self, *trainings: str, **given: str) -> Survey:
        return survey(self.stack, given, self, lambda _: RepositoryIds("11", "22"), trainings)

    def deploy(self, *trainings: str, **given: str) -> QuotaRequests:
        """Deploy as `relaunch deploy` does."""
        plan = self.survey(*trainings, **given)
        running = Deployment(
            self,
            find_source(),
            self.sam,  # type: ignore[arg-type]
            self._confirm,
            self.log.append,
            sleep=lambda seconds: self.log.append(f"pause {seconds:.0f}"),
        )
        return running.run(plan)

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
                "RepositoryArn": "arn:aws:ecr:us-east-1:111122223333:repository/relaunch/trainer",
            }
        }
        # The fake makes no resources.
        make_client("ecs").create_cluster(clusterName="relaunch")
        yield account


def test_the_stacks_are_made_in_the_order_in_which_they_need_each_other(account: FakeAccount) -> None:
    requests = account.deploy(ExistingCluster="false")

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
    assert (len(requests.made), requests.refused) == (2, [])


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
    account.stacks.have("relaunch", "DELETE_FAILED")
    with pytest.raises(RefusedError, match="aws cloudformation delete-stack --stack-name relaunch"):
        account.deploy()

    assert account.log == []


def test_a_stack_of_somebody_else_with_this_name_is_refused(account: FakeAccount) -> None:
    account.stacks.more_outputs.clear()
    with pytest.raises(RefusedError, match="has no output ClusterName, VpcId, CheckpointBucketName: it is another one"):
        account.deploy()


def test_machines_pull_images_of_the_trainings_alone(account: FakeAccount) -> None:
    account.deploy()

    repository = account.stacks.more_outputs["relaunch-training"]["RepositoryArn"]
    assert account.parameters("relaunch-machines")["ImageRepositories"] == repository


def test_a_training_gets_a_role_of_its_own_which_the_next_deployment_keeps(account: FakeAccount) -> None:
    key = make_client("kms").create_key()["KeyMetadata"]["Arn"]
    account.deploy("vision", "speech", CheckpointKeyArns=key)
    assert account.survey("vision").trainings == ["speech", "vision"]
    account.deploy("bert")

    assert account.parameters("relaunch-training-vision") == {
        "ApplicationStack": "relaunch",
        "TrainingName": "vision",
        "RolePath": "/relaunch/trainings/relaunch/",
        "CheckpointBucket": "relaunch-training-checkpoints",
        "DataBucket": "",
        "CheckpointKeyArns": key,
    }
    assert account.stacks.stacks["relaunch-training-vision"].template == find_source().training_role
    assert "relaunch-training-vision: no change" in account.log
    assert account.survey().trainings == ["bert", "speech", "vision"]


def test_the_role_of_a_training_lies_where_the_application_may_pass_roles_of(account: FakeAccount) -> None:
    account.deploy("vision", TaskRolePath="relaunch/a/")
    account.deploy("bert")

    paths = [account.parameters(f"relaunch-training-{each}")["RolePath"] for each in ("vision", "bert")]
    assert paths == 2 * ["/relaunch/a/trainings/relaunch/"]


def test_stacks_of_other_applications_are_no_roles_of_this_one(account: FakeAccount) -> None:
    account.stacks.have("relaunch-training-vision", "CREATE_COMPLETE", ClusterName="relaunch-training-vision")
    other = {"ApplicationStack": "relaunch-training", "TrainingName": "bert"}
    account.stacks.have("relaunch-training-training-bert", "CREATE_COMPLETE", **other)

    assert account.survey().trainings == []


@pytest.mark.parametrize("name", ["Vision", "", "a/b", "-a", "a" * 49])
def test_what_is_no_name_of_a_training_gets_no_role(account: FakeAccount, name: str) -> None:
    with pytest.raises(RefusedError, match="is no name of a training: a to z"):
        account.survey(name)


def test_a_role_of_a_training_needs_the_stack_of_trainings(account: FakeAccount) -> None:
    with pytest.raises(RefusedError, match="leave out Training=off"):
        account.survey("vision", Training="off")


def test_a_repository_on_github_gets_a_provider_and_its_numbers(account: FakeAccount) -> None:
    plan = account.survey(GitHubRepository="acme/vision")
    assert plan.needs_github_provider
    account.deploy(GitHubRepository="acme/vision")

    made = account.parameters("relaunch-training")
    assert (made["GitHubOwnerId"], made["GitHubRepositoryId"]) == ("11", "22")
    assert made["GitHubOidcProviderArn"].endswith("token.actions.githubusercontent.com")
    assert not account.survey(GitHubRepository="acme/vision").needs_github_provider


def test_another_repository_has_other_numbers_and_its_own_branch(account: FakeAccount) -> None:
    named = {"GitHubOwnerId": "1", "GitHubRepositoryId": "2", "GitHubRef": "refs/heads/release"}
    account.deploy(GitHubRepository="acme/vision", **named)
    kept, other = account.survey().training, account.survey(GitHubRepository="acme/speech").training

    assert other
    assert named.items() <= dict(kept or {}).items()
    assert (other["GitHubOwnerId"], other["GitHubRepositoryId"], other.get("GitHubRef")) == ("11", "22", None)


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
    assert "trusted by its name alone: whoever makes a repository of that name" in note
    assert "can push images and submit jobs" in note
    assert plan.training is not None
    assert "GitHubRepositoryId" not in plan.training


def test_without_what_trainings_need_the_account_must_have_a_cluster(account: FakeAccount) -> None:
    account.deploy(Training="off", ClusterName="relaunch")

    assert set(account.stacks.stacks) == {"relaunch-machines", "relaunch"}
    with pytest.raises(RefusedError, match="the ECS cluster other does not exist"):
        account.deploy(ClusterName="other")


class TestAnotherName:
    @pytest.fixture
    def vision(self, account: FakeAccount) -> FakeAccount:
        repository = "arn:aws:ecr:us-east-1:111122223333:repository/vision-b/trainer"
        outputs = {**account.stacks.more_outputs["relaunch-training"], "RepositoryArn": repository}
        account.stacks.more_outputs["vision-b-training"] = outputs
        account.stack = "vision-b"
        return account

    def test_each_stack_is_told_what_tells_it_from_others(self, vision: FakeAccount) -> None:
        vision.deploy()

        training, machines = (vision.parameters(f"vision-b-{each}") for each in ("training", "machines"))
        assert (training["RolePath"], machines["RolePath"]) == ("vision-b/", "vision-b/")
        for each in (training, vision.sam.parameters):
            assert each["TaskDefinitionFamilies"] == "vision_b-*"
            assert each["TaskRolePath"] == "vision-b/tasks/"
        assert machines["ImageRepositories"].endswith(":repository/vision-b/trainer")
        assert {"RolePath", "ImageRepositories"}.isdisjoint(vision.sam.parameters)
        assert vision.survey().notes == ()

    def test_what_is_named_comes_first(self, vision: FakeAccount) -> None:
        vision.deploy(TaskDefinitionFamilies="bert", TaskRolePath="x/", RolePath="y/", ImageRepositories="z")

        named = {"TaskDefinitionFamilies": "bert", "TaskRolePath": "x/", "RolePath": "y/"}
        assert named.items() <= vision.parameters("vision-b-training").items()
        assert vision.sam.parameters["TaskRolePath"] == "x/"
        assert vision.parameters("vision-b-machines")["ImageRepositories"] == "z"

    def test_one_that_was_deployed_before_keeps_what_it_has_and_that_is_told(self, vision: FakeAccount) -> None:
        vision.deploy(TaskDefinitionFamilies="relaunch-*", TaskRolePath="relaunch/", RolePath="relaunch/")
        for name in ("vision-b", "vision-b-training", "vision-b-machines"):
            found = vision.stacks.stacks[name].parameters
            for parameter in ("TaskDefinitionFamilies", "TaskRolePath", "RolePath", "ImageRepositories"):
                found.pop(parameter, None)

        notes = vision.survey().notes
        vision.deploy(MaxMachines="5")

        assert len([each for each in notes if "docs/deploy.md#several-stacks" in each]) == 2
        for name in ("vision-b", "vision-b-training", "vision-b-machines"):
            assert {"TaskRolePath", "RolePath"}.isdisjoint(vision.parameters(name))

    def test_operators_register_in_the_families_that_the_application_runs(self, vision: FakeAccount) -> None:
        vision.deploy()
        vision.deploy(TaskDefinitionFamilies="speech-*")
        vision.sam.parameters = {}
        vision.stacks.have("vision-b", "CREATE_COMPLETE", TaskDefinitionFamilies="by-hand-*")
        vision.deploy()

        assert vision.parameters("vision-b-training")["TaskDefinitionFamilies"] == "by-hand-*"

    def test_without_machines_the_path_of_roles_is_no_contradiction(self, vision: FakeAccount) -> None:
        vision.deploy(Machines="off", CapacityProviders="g5=g5.xlarge/spot")

        assert "vision-b-machines" not in vision.stacks.stacks


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
