"""A deployment sets up machines of our own: from an account as it is to the parameters of the application."""

from collections.abc import Iterator, Mapping

import pytest

from fakes.aws import aws_in_process, make_client
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.change_set import ChangeSets
from relaunch_cli.deployment.machine_parameters import read_parameters
from relaunch_cli.deployment.machines import MachineClients, prepare_machines
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source

HANDED_ON = ("MachineSubnets", "MachineLaunchTemplates", "MachineInstanceRoleArn", "MachineDiskGiB")
TEMPLATE = find_source().machines
BY_HAND = {
    "MachineSubnets": "us-east-1a=subnet-0a",
    "MachineLaunchTemplates": "gpu=lt-0f:3",
    "MachineInstanceRoleArn": "arn:aws:iam::111122223333:role/machines",
}


class Account:
    """An account (moto) with a default VPC and two clusters, whose stacks are fakes."""

    def __init__(self) -> None:
        self.ec2, self.ecs = make_client("ec2"), make_client("ecs")
        for name in ("relaunch", "training"):
            self.ecs.create_cluster(clusterName=name)
        self.stacks = FakeStacks()
        self.lines: list[str] = []
        self.questions: list[str] = []

    def deploy(self, *arguments: str, repository_arn: str = "") -> Mapping[str, str]:
        """Set up machines as `relaunch deploy` does, and the application, which keeps its other parameters."""
        clients = MachineClients(self.ec2, self.ecs, TEMPLATE, repository_arn)
        change_sets = ChangeSets(self.stacks, self._confirm, self.lines.append)
        told = prepare_machines(read_parameters(arguments), "relaunch", clients, change_sets)
        before = self.stacks.stacks["relaunch"].parameters if "relaunch" in self.stacks.stacks else {}
        self.stacks.have("relaunch", "UPDATE_COMPLETE", **{**before, **told})
        return told

    def _confirm(self, question: str) -> bool:
        self.questions.append(question)
        return True

    @property
    def machines(self) -> Mapping[str, str]:
        """The parameters of the stack of machines."""
        return self.stacks.stacks["relaunch-machines"].parameters

    @property
    def default_vpc(self) -> str:
        return str(self.ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"])


@pytest.fixture
def account() -> Iterator[Account]:
    with aws_in_process():
        yield Account()


def test_a_first_deployment_with_nothing_said_has_machines_in_every_zone_of_the_default_vpc(account: Account) -> None:
    told = account.deploy("Runtime=python3.13")

    assert told["Runtime"] == "python3.13"
    assert told["MachineLaunchTemplates"] == "gpu=lt-0a:1,neuron=lt-0b:1"
    assert told["MachineInstanceRoleArn"] == "arn:aws:iam::111122223333:role/relaunch/machines"
    assert told["MachineDiskGiB"] == "100"
    assert [each.partition("=")[0] for each in told["MachineSubnets"].split(",")] == [
        f"us-east-1{letter}" for letter in "abcdef"
    ]
    assert account.machines == {"ClusterName": "relaunch", "VpcId": account.default_vpc}
    assert account.stacks.stacks["relaunch-machines"].template == TEMPLATE
    assert account.questions == ["Deploy the stack relaunch-machines?"]
    assert account.lines[0].startswith(
        f"machines of our own: cluster relaunch, {account.default_vpc}, us-east-1a=subnet-"
    )
    assert account.lines[-1].startswith("for the stack relaunch: MachineSubnets=us-east-1a=subnet-")


def test_what_is_named_goes_to_the_stack_that_it_is_of(account: Account) -> None:
    told = account.deploy(
        "ClusterName=training", "DiskGiB=300", "MaxMachines=5", "IdleMinutes=60", "MachineWarmMinutes=30"
    )

    assert account.machines == {
        "ClusterName": "training",
        "VpcId": account.default_vpc,
        "DiskGiB": "300",
        "IdleMinutes": "60",
    }
    assert told["MachineDiskGiB"] == "300"
    assert {name: told[name] for name in told if name not in HANDED_ON} == {
        "ClusterName": "training",
        "MaxMachines": "5",
        "MachineWarmMinutes": "30",
    }


REPOSITORY = "arn:aws:ecr:us-east-1:111122223333:repository/relaunch/trainer"


@pytest.mark.parametrize("before", [(), ("ImageRepositories=",)], ids=["a new stack", "one whose machines pull all"])
def test_machines_pull_from_the_repository_of_the_trainings_alone(account: Account, before: tuple[str, ...]) -> None:
    if before:
        account.deploy(*before)
    account.deploy(repository_arn=REPOSITORY)

    assert account.machines["ImageRepositories"] == REPOSITORY
    assert f"machines pull images from {REPOSITORY} alone" in "\n".join(account.lines)
    account.lines.clear()
    account.deploy(repository_arn=REPOSITORY)
    assert "machines pull images" not in "\n".join(account.lines)


def test_repositories_that_were_named_are_kept(account: Account) -> None:
    account.deploy("ImageRepositories=arn:aws:ecr:us-east-1:111122223333:repository/*", repository_arn=REPOSITORY)
    account.deploy(repository_arn=REPOSITORY)

    assert account.machines["ImageRepositories"].endswith(":repository/*")


def test_a_second_deployment_changes_nothing(account: Account) -> None:
    first = account.deploy("ClusterName=training", "DiskGiB=300")
    account.questions.clear()

    again = account.deploy()

    assert account.questions == []
    assert "relaunch-machines: no change" in account.lines
    assert {name: again[name] for name in HANDED_ON} == {name: first[name] for name in HANDED_ON}
    assert account.machines["ClusterName"] == "training"


def test_an_update_that_changes_a_launch_template_hands_on_its_new_version(account: Account) -> None:
    account.deploy()

    assert account.deploy("DiskGiB=300")["MachineLaunchTemplates"] == "gpu=lt-0a:2,neuron=lt-0b:2"
    assert account.deploy()["MachineLaunchTemplates"] == "gpu=lt-0a:2,neuron=lt-0b:2"
    assert account.machines["DiskGiB"] == "300"


def test_a_disk_that_ec2_would_refuse_is_refused_before_anything_is_deployed(account: Account) -> None:
    account.deploy("DiskIops=4000")
    account.questions.clear()

    # The operations per second are those of the last time.
    with pytest.raises(RefusedError, match="add DiskIops=8000 or more"):
        account.deploy("DiskThroughput=2000")
    assert account.questions == []
    account.deploy("DiskThroughput=1000")
    assert account.machines["DiskThroughput"] == "1000"


def test_subnets_that_were_named_are_kept_until_others_or_a_vpc_are(account: Account) -> None:
    subnets = account.ec2.describe_subnets()["Subnets"]
    one = f"{subnets[0]['AvailabilityZone']}={subnets[0]['SubnetId']}"

    assert account.deploy(f"MachineSubnets={one}")["MachineSubnets"] == one
    assert account.deploy()["MachineSubnets"] == one
    assert account.deploy(f"VpcId={account.default_vpc}")["MachineSubnets"].count("subnet-") == len(subnets)


def test_a_vpc_that_was_named_is_kept(account: Account) -> None:
    vpc_id = account.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    account.ec2.create_subnet(VpcId=vpc_id, AvailabilityZone="us-east-1a", CidrBlock="10.9.0.0/24")
    account.deploy(f"VpcId={vpc_id}")
    del account.stacks.stacks["relaunch"]

    account.deploy("Machines=on")

    assert account.machines["VpcId"] == vpc_id


def test_a_deployment_whose_application_failed_is_finished_by_the_next_one(account: Account) -> None:
    account.deploy()
    del account.stacks.stacks["relaunch"]

    assert account.deploy()["MachineLaunchTemplates"] == "gpu=lt-0a:1,neuron=lt-0b:1"


def test_turned_off_the_application_forgets_them_and_stays_off_until_they_are_turned_on(account: Account) -> None:
    account.deploy()

    assert account.deploy("Machines=off", "CapacityProviders=g5=g5.xlarge/spot") == {
        "CapacityProviders": "g5=g5.xlarge/spot",
        "MachineSubnets": "",
        "MachineLaunchTemplates": "",
        "MachineInstanceRoleArn": "",
    }
    assert account.deploy("MaxRunningJobs=5") == {"MaxRunningJobs": "5"}
    assert account.lines[-1] == (
        "machines of our own are off in the stack relaunch, and stay off: Machines=on turns them on"
    )
    assert account.deploy("Machines=on")["MachineLaunchTemplates"] == "gpu=lt-0a:1,neuron=lt-0b:1"


def test_turned_off_nothing_is_asked_of_aws() -> None:
    nothing = MachineClients(None, None, "")
    change_sets = ChangeSets(None, lambda _: True, print)

    assert set(prepare_machines(read_parameters(["Machines=off"]), "relaunch", nothing, change_sets).values()) == {""}


def test_launch_templates_that_are_given_by_hand_are_handed_on_and_kept(account: Account) -> None:
    given = [f"{name}={value}" for name, value in BY_HAND.items()]

    assert account.deploy(*given) == BY_HAND
    assert account.deploy() == {}
    assert account.lines == [
        "machines of our own keep the launch templates that were given by hand (gpu=lt-0f:3): Machines=on sets up "
        "new ones"
    ]
    assert list(account.stacks.stacks) == ["relaunch"]


def test_a_stack_that_was_only_prepared_is_a_new_one(account: Account) -> None:
    account.stacks.have("relaunch", "REVIEW_IN_PROGRESS")

    assert account.deploy()["MachineLaunchTemplates"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["ClusterName=other"], "the ECS cluster other does not exist in us-east-1: `aws ecs create-cluster"),
        (["VpcId=vpc-0bad"], "the VPC vpc-0bad has no subnet to launch machines in"),
        (["MachineWarmMinutes=60"], "add IdleMinutes=70 or more"),
        (["MachineRegistrationMinutes=20"], "add RegistrationMinutes=30 or so"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_made(account: Account, arguments: list[str], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        account.deploy(*arguments)

    assert account.stacks.stacks == {}


def test_minutes_of_the_stacks_as_they_are_count_too(account: Account) -> None:
    account.deploy("IdleMinutes=60", "MachineWarmMinutes=45")

    account.deploy("MachineWarmMinutes=50")
    with pytest.raises(RefusedError, match="add IdleMinutes=61 or more"):
        account.deploy("MachineWarmMinutes=51")
    with pytest.raises(RefusedError, match="after IdleMinutes=50, and MachineWarmMinutes=50"):
        account.deploy("IdleMinutes=50")


def test_a_stack_of_that_name_that_is_another_one_is_told(account: Account) -> None:
    describe = account.stacks.describe_stacks

    def without_outputs(**request: str) -> Mapping[str, list[Mapping[str, object]]]:
        (stack,) = describe(**request)["Stacks"]
        return {"Stacks": [{**stack, "Outputs": []}]}

    account.stacks.describe_stacks = without_outputs  # type: ignore[method-assign,assign]

    with pytest.raises(
        RefusedError, match="relaunch-machines has no output MachineLaunchTemplates, MachineInstanceRole"
    ):
        account.deploy()
