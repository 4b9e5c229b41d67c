"""A deployment is removed in an order in which nothing is left running, and what is kept is told."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.stacks import FakeStacks
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.uninstallation import Uninstallation, is_complete, kept_after

TRAINING_OUTPUTS = {
    "CheckpointBucketName": "made-a",
    "DataBucketName": "made-b",
    "RepositoryName": "relaunch/trainer",
    "LogGroupName": "/relaunch/relaunch",
}


class Draining:
    """Jobs and machines that are gone after some polls, and the rules of triggers."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self.jobs = self.machines = self
        self.asked = 0
        self.removed: list[str] = []

    def load_open(self, _limit: int) -> list[str]:
        self.asked += 1
        # The first question is which jobs are to be cancelled.
        return [] if self.asked == 1 or self.asked > self.polls + 1 else ["demo-1"]

    def load_living(self, _limit: int) -> list[str]:
        return [] if self.asked > self.polls + 1 else ["m-1"]

    def list_rules(self) -> list[Any]:
        assert self.asked > self.polls, "rules are removed while jobs are open"
        return [type("Rule", (), {"name": "relaunch-relaunch-a1"})]

    def remove_rule(self, name: str) -> None:
        self.removed.append(name)


def removal(lines: list[str], pauses: list[float]) -> Uninstallation:
    return Uninstallation("relaunch", pytest.fail, lines.append, pauses.append)


def test_rules_are_removed_after_the_last_job_and_machine() -> None:
    lines: list[str] = []
    pauses: list[float] = []
    draining = Draining(polls=3)
    removal(lines, pauses).drain(draining, draining)  # type: ignore[arg-type]

    assert draining.removed == ["relaunch-relaunch-a1"]
    assert len(pauses) == 3
    assert lines == ["waiting for 2: job demo-1 …", "removed the rule relaunch-relaunch-a1"]


class Described:
    """CloudFormation, with the outputs of each stack by its name; `relaunch` has capacity providers."""

    def __init__(self, **outputs: dict[str, str]) -> None:
        self.outputs = {name.replace("_", "-"): each for name, each in outputs.items()}

    def describe_stacks(self, **request: str) -> Any:
        name = request.get("StackName", "")
        if not name:
            return {"Stacks": []}
        if name not in self.outputs:
            error = {"Code": "ValidationError", "Message": f"Stack with id {name} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")
        entries = "relaunch-g5=g5.xlarge/spot,relaunch-vision=g6.xlarge/spot,g6=g6.xlarge/spot"
        shown = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs[name].items()]
        parameters = [{"ParameterKey": "CapacityProviders", "ParameterValue": entries}]
        return {"Stacks": [{"StackStatus": "CREATE_COMPLETE", "Parameters": parameters, "Outputs": shown}]}


def test_a_stack_that_has_the_name_of_a_capacity_provider_and_is_none_is_left_alone() -> None:
    there = Described(
        relaunch={},
        relaunch_g5={"ProviderName": "relaunch-g5"},
        relaunch_vision={"TableName": "relaunch-vision-JobsTable-1"},
        relaunch_machines={},
    )
    found = Uninstallation("relaunch", lambda _service: there, pytest.fail, pytest.fail).find_stacks()

    assert [each.name for each in found] == ["relaunch", "relaunch-g5", "relaunch-machines"]


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


class Functions:
    """CloudFormation and Lambda of a stack without a webhook; `refusal` is what CloudFormation says of the others."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.closed: list[str] = []

    def describe_stack_resource(self, **request: str) -> Any:
        code = "ValidationError" if request["LogicalResourceId"] == "GithubWebhookFunction" else self.refusal
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeStackResource")
        return {"StackResourceDetail": {"PhysicalResourceId": f"relaunch-{request['LogicalResourceId']}"}}

    def put_function_concurrency(self, **request: Any) -> None:
        assert request["ReservedConcurrentExecutions"] == 0
        self.closed.append(request["FunctionName"])


def test_a_stack_without_a_webhook_is_closed_too() -> None:
    lines: list[str] = []
    functions = Functions()
    Uninstallation("relaunch", lambda _service: functions, lines.append, pytest.fail).close()

    assert functions.closed == ["relaunch-JobApiFunction", "relaunch-SubmitJobFunction"]
    assert lines == ["no event starts a job any more"]


def test_a_function_that_may_not_be_looked_up_is_not_taken_for_one_that_is_not_there() -> None:
    functions = Functions("AccessDenied")
    with pytest.raises(ClientError, match="AccessDenied"):
        Uninstallation("relaunch", lambda _service: functions, pytest.fail, pytest.fail).close()

    assert functions.closed == []


def test_what_does_not_end_is_told_and_nothing_is_deleted() -> None:
    pauses: list[float] = []
    draining = Draining(polls=10_000)
    with pytest.raises(RefusedError, match="after 15 minutes there still is job demo-1, machine m-1: nothing more was"):
        removal([], pauses).drain(draining, draining)  # type: ignore[arg-type]

    assert sum(pauses) == 900
    assert draining.removed == []


def test_what_holds_work_is_kept_and_told_with_its_command() -> None:
    found = [
        Stack("relaunch", "CREATE_COMPLETE", {"TableDeletionPolicy": "Retain"}, {"TableName": "relaunch-JobsTable-1"}),
        Stack("relaunch-training", "CREATE_COMPLETE", {}, TRAINING_OUTPUTS),
    ]
    kept = {each.what: each for each in kept_after(found, "relaunch")}

    assert kept["table relaunch-JobsTable-1"].command == "aws dynamodb delete-table --table-name relaunch-JobsTable-1"
    assert "--bucket made-a" in kept["bucket made-a"].command
    assert "bucket made-b" in kept
    assert kept["repository relaunch/trainer"].command.endswith("--repository-name relaunch/trainer")
    assert kept["log group /relaunch/relaunch"].why == "what trainings wrote, until it is 30 days old"
    assert all(each.why for each in kept.values())


def test_what_an_earlier_deployment_made_is_listed_again() -> None:
    bucket = "relaunch-training-newcheckpointbucket-1a2b"
    adopted = {"CheckpointBucket": bucket, "DataBucket": "mine", "ExistingRepository": "true"}
    outputs = {**TRAINING_OUTPUTS, "CheckpointBucketName": bucket, "DataBucketName": "mine"}
    kept = [
        each.what for each in kept_after([Stack("relaunch-training", "CREATE_COMPLETE", adopted, outputs)], "relaunch")
    ]

    assert [f"bucket {bucket}", "repository relaunch/trainer"] == kept[:2]


def test_what_the_stacks_did_not_make_is_not_told() -> None:
    existing = {"CheckpointBucket": "mine", "DataBucket": "mine", "ExistingRepository": "true"}
    found = [
        Stack("relaunch", "CREATE_COMPLETE", {"TableDeletionPolicy": "Delete"}, {"TableName": "relaunch-JobsTable-1"}),
        Stack("relaunch-training", "CREATE_COMPLETE", existing, {**TRAINING_OUTPUTS, "RepositoryName": "mine"}),
    ]
    kept = [each.what for each in kept_after(found, "relaunch")]

    assert not [what for what in kept if what.startswith(("bucket", "repository", "table"))]


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
