"""A stack is deployed by a change set, once, after a yes, and says why it is not."""

import pytest

from fakes.stacks import FakeStacks
from relaunch_cli import exit_codes
from relaunch_cli.deployment.change_set import ChangeSets, Stack, read_stack
from relaunch_cli.deployment.refusals import RefusedError

NAME = "relaunch-machines"
TEMPLATE = "Resources: {}"
PARAMETERS = {"ClusterName": "training", "VpcId": "vpc-0a"}


class Terminal:
    """Answers the question that is asked, and keeps what is told."""

    def __init__(self, *, is_yes: bool = True) -> None:
        self.is_yes = is_yes
        self.questions: list[str] = []
        self.lines: list[str] = []

    def confirm(self, question: str) -> bool:
        self.questions.append(question)
        return self.is_yes


def deploy(stacks: FakeStacks, terminal: Terminal, template: str = TEMPLATE, **parameters: str) -> Stack:
    slept: list[float] = []
    change_sets = ChangeSets(stacks, terminal.confirm, terminal.lines.append, slept.append)
    return change_sets.deploy(NAME, template, PARAMETERS | parameters, read_stack(NAME, stacks))


@pytest.fixture
def stacks() -> FakeStacks:
    return FakeStacks()


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_a_new_stack_is_shown_confirmed_and_made(stacks: FakeStacks, terminal: Terminal) -> None:
    stacks.delays = 4

    stack = deploy(stacks, terminal)

    assert (stack.status, stack.parameters) == ("CREATE_COMPLETE", PARAMETERS)
    assert stack.outputs["MachineLaunchTemplates"] == "gpu=lt-0a:1,neuron=lt-0b:1"
    assert terminal.questions == ["Deploy the stack relaunch-machines?"]
    assert terminal.lines == [
        "relaunch-machines: ClusterName=training, VpcId=vpc-0a",
        "  Add SecurityGroup (AWS::EC2::SecurityGroup)",
        "  Add GpuLaunchTemplate (AWS::EC2::LaunchTemplate)",
    ]


def test_a_stack_without_changes_is_neither_asked_about_nor_touched(stacks: FakeStacks, terminal: Terminal) -> None:
    first = deploy(stacks, terminal)
    terminal.questions.clear()
    stacks.calls.clear()

    assert deploy(stacks, terminal) == first
    assert terminal.questions == []
    assert terminal.lines[-1] == "relaunch-machines: no change"
    assert "ExecuteChangeSet" not in stacks.calls
    assert stacks.change_sets == {}


def test_a_changed_template_is_an_update_that_tells_what_it_replaces(stacks: FakeStacks, terminal: Terminal) -> None:
    deploy(stacks, terminal)

    stack = deploy(stacks, terminal, "Resources: {More: {}}")

    assert stack.status == "UPDATE_COMPLETE"
    assert stack.outputs["MachineLaunchTemplates"] == "gpu=lt-0a:2,neuron=lt-0b:2"
    assert "  Modify SecurityGroup (AWS::EC2::SecurityGroup), which replaces it" in terminal.lines


def test_a_no_leaves_nothing_behind(stacks: FakeStacks) -> None:
    unconfirmed = "the changes of relaunch-machines were not confirmed: nothing was deployed"
    with pytest.raises(RefusedError, match=unconfirmed) as refused:
        deploy(stacks, Terminal(is_yes=False))

    assert refused.value.exit_code == exit_codes.CANCELLED
    assert (stacks.stacks, stacks.change_sets) == ({}, {})


def test_a_no_to_an_update_leaves_the_stack(stacks: FakeStacks, terminal: Terminal) -> None:
    first = deploy(stacks, terminal)

    with pytest.raises(RefusedError, match="were not confirmed"):
        deploy(stacks, Terminal(is_yes=False), DiskGiB="200")

    assert read_stack(NAME, stacks) == first
    assert stacks.change_sets == {}


def test_what_a_validation_found_is_said_beside_the_reason_that_names_a_call_alone(
    stacks: FakeStacks, terminal: Terminal
) -> None:
    stacks.refusal = "The following hook(s)/validation failed: [AWS::EarlyValidation::ResourceExistenceCheck]"
    stacks.validation = "a resource of type AWS::IAM::InstanceProfile with this name exists"

    with pytest.raises(
        RefusedError, match=r"ExistenceCheck\]; Profile: a resource of type [\w:]+ with this name exists$"
    ):
        deploy(stacks, terminal)


def test_what_cloudformation_refuses_is_told_and_leaves_nothing_behind(stacks: FakeStacks, terminal: Terminal) -> None:
    stacks.refusal = "Parameter IdleMinutes failed to satisfy constraint"

    with pytest.raises(RefusedError, match="CloudFormation refuses the stack relaunch-machines: Parameter IdleMinutes"):
        deploy(stacks, terminal)

    assert (stacks.stacks, stacks.change_sets, terminal.questions) == ({}, {}, [])


@pytest.mark.parametrize("is_new", [True, False])
def test_a_deployment_that_fails_tells_its_first_reason(
    stacks: FakeStacks, terminal: Terminal, *, is_new: bool
) -> None:
    if not is_new:
        deploy(stacks, terminal)
    stacks.failure = "You are not authorized to perform this operation: ec2:CreateLaunchTemplate"

    with pytest.raises(RefusedError) as refused:
        deploy(stacks, terminal, DiskGiB="200")

    status = "ROLLBACK_COMPLETE" if is_new else "UPDATE_ROLLBACK_COMPLETE"
    assert str(refused.value) == (
        f"the stack relaunch-machines was not deployed ({status}): GpuLaunchTemplate: {stacks.failure}"
    )


def test_a_first_deployment_that_failed_leaves_nothing_and_is_made_again(
    stacks: FakeStacks, terminal: Terminal
) -> None:
    stacks.failure = "You are not authorized to perform this operation: ec2:CreateLaunchTemplate"
    with pytest.raises(RefusedError):
        deploy(stacks, terminal)
    assert (stacks.stacks[NAME].status, stacks.left) == ("ROLLBACK_COMPLETE", [])
    stacks.failure = ""

    assert deploy(stacks, terminal).status == "CREATE_COMPLETE"
    assert f"{NAME}: deleting what is left of a first deployment that failed" in terminal.lines


def test_what_cannot_be_deleted_is_told(stacks: FakeStacks, terminal: Terminal) -> None:
    stacks.have(NAME, "ROLLBACK_COMPLETE")
    stacks.barrier = lambda _name, _parameters: "in use"

    with pytest.raises(RefusedError, match=f"the stack {NAME} was not deleted .DELETE_FAILED.: see its events"):
        deploy(stacks, terminal)


def test_a_stack_that_was_left_for_a_review_is_made(stacks: FakeStacks, terminal: Terminal) -> None:
    stacks.have(NAME, "REVIEW_IN_PROGRESS")

    assert deploy(stacks, terminal).status == "CREATE_COMPLETE"


def test_a_no_leaves_what_somebody_else_left_for_a_review(stacks: FakeStacks) -> None:
    stacks.have(NAME, "REVIEW_IN_PROGRESS")

    with pytest.raises(RefusedError, match="were not confirmed"):
        deploy(stacks, Terminal(is_yes=False))

    assert list(stacks.stacks) == [NAME]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            "DELETE_FAILED",
            "delete it, `aws cloudformation delete-stack --stack-name relaunch-machines`, and deploy",
        ),
        ("UPDATE_IN_PROGRESS", "is being changed \\(UPDATE_IN_PROGRESS\\): deploy again when that is over"),
        ("UPDATE_ROLLBACK_FAILED", "`aws cloudformation continue-update-rollback --stack-name relaunch-machines`"),
    ],
)
def test_a_stack_that_cannot_be_changed_now_is_left_alone(
    stacks: FakeStacks, terminal: Terminal, status: str, text: str
) -> None:
    stacks.have(NAME, status)

    with pytest.raises(RefusedError, match=text):
        deploy(stacks, terminal)

    assert "CreateChangeSet" not in stacks.calls


def test_what_never_ends_is_given_up(stacks: FakeStacks, terminal: Terminal) -> None:
    stacks.delays = 10_000

    with pytest.raises(RefusedError, match="the change set of relaunch-machines is not done after 15 minutes: see"):
        deploy(stacks, terminal)


def test_a_stack_that_somebody_deletes_meanwhile_is_told(stacks: FakeStacks, terminal: Terminal) -> None:
    execute = stacks.execute_change_set
    stacks.execute_change_set = lambda **request: (execute(**request), stacks.stacks.clear())  # type: ignore[method-assign,assign,return-value]

    with pytest.raises(RefusedError, match="the stack relaunch-machines was deleted meanwhile: deploy again"):
        deploy(stacks, terminal)
