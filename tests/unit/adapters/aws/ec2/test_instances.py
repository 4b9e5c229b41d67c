"""What EC2 says of an instance."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from fakes.builders import INSTANCE_ID
from fakes.fleet import MACHINE_ID
from relaunch.adapters.aws.ec2.instances import observe_instance
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import InstanceObservation, InstanceState
from relaunch.core.offerings.offering import OfferingKey

LAUNCHED_AT = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)


def described(**members: Any) -> Any:
    """Return a running spot instance of a machine as EC2 describes it."""
    return {
        "InstanceId": INSTANCE_ID,
        # EC2's own: that of the fleet.
        "ClientToken": "fleet-8a7b6c5d-4e3f-2a1b-0c9d-8e7f6a5b4c3d-0",
        "State": {"Code": 16, "Name": "running"},
        "InstanceType": "g6.xlarge",
        "InstanceLifecycle": "spot",
        "Placement": {"AvailabilityZone": "us-east-1a", "Tenancy": "default"},
        "LaunchTime": LAUNCHED_AT,
        "Tags": [
            {"Key": "relaunch:machine", "Value": MACHINE_ID},
            {"Key": "aws:ec2:fleet-id", "Value": "fleet-8a7b6c5d-4e3f-2a1b-0c9d-8e7f6a5b4c3d"},
        ],
        **members,
    }


def test_an_instance_of_a_machine() -> None:
    assert observe_instance(described()) == InstanceObservation(
        INSTANCE_ID,
        InstanceState.RUNNING,
        MACHINE_ID,
        OfferingKey("g6.xlarge", "us-east-1a", PurchaseOption.SPOT),
        LAUNCHED_AT,
    )


@pytest.mark.parametrize("state", list(InstanceState))
def test_every_state_of_ec2_is_known(state: InstanceState) -> None:
    assert observe_instance(described(State={"Name": state.value})).state is state


def test_an_instance_without_a_lifecycle_is_on_demand() -> None:
    instance = described()
    del instance["InstanceLifecycle"]

    offering = observe_instance(instance).offering

    assert offering == OfferingKey("g6.xlarge", "us-east-1a", PurchaseOption.ON_DEMAND)


@pytest.mark.parametrize("missing", ["InstanceType", "Placement"])
def test_an_instance_that_ec2_half_forgot_has_no_offering(missing: str) -> None:
    instance = described()
    del instance[missing]

    assert observe_instance(instance).offering is None


def test_what_ec2_remembers_last_of_an_instance_is_its_id_and_state() -> None:
    instance = {"InstanceId": INSTANCE_ID, "State": {"Name": "terminated"}}

    assert observe_instance(instance) == InstanceObservation(  # type: ignore[arg-type]
        INSTANCE_ID, InstanceState.TERMINATED
    )


def test_the_time_of_the_launch_is_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))

    launched_at = observe_instance(described(LaunchTime=LAUNCHED_AT.astimezone(tokyo))).launched_at

    assert launched_at == LAUNCHED_AT
    assert launched_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            {"Code": "Server.SpotInstanceTermination", "Message": "Server.SpotInstanceTermination: Spot termination"},
            "Server.SpotInstanceTermination: Spot termination",
        ),
        (
            {"Code": "Client.UserInitiatedShutdown", "Message": "User said so"},
            "Client.UserInitiatedShutdown: User said so",
        ),
        ({"Message": "no code"}, "no code"),
        ({}, ""),
    ],
)
def test_the_reason_of_a_state_begins_with_its_code(reason: dict[str, str], said: str) -> None:
    assert observe_instance(described(StateReason=reason)).state_reason == said
