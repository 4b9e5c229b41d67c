"""Which request of a machine is given up for room on an older one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.machines import NOW, fleet_request, machine, offering, override
from relaunch.core.machines.decision import find_older, may_give_way
from relaunch.core.machines.machine import Claim, Machine, MachineState, Resources, machine_id_of

GPU = Resources(1024, 1_000, 1.0)
EIGHT = Resources(8192, 60_000, 8.0)
OVERRIDES = (override(capacity=EIGHT), override(zone="us-east-1b", capacity=EIGHT))


def requested(job_id: str = "bert-1", number: int = 1, **fields) -> Machine:
    """Return a machine with eight GPUs that a job requested."""
    usual = {
        "machine_id": machine_id_of(job_id, 1, number),
        "request": fleet_request(*OVERRIDES),
        "claims": (Claim(job_id, 1, GPU, NOW),),
        "created_at": NOW,
        "asked_at": None,
    }
    return machine(**{**usual, **fields})


def older(**fields) -> Machine:
    """Return a machine that was requested a second earlier."""
    return requested("resnet-1", **{"created_at": NOW - timedelta(seconds=1), **fields})


def test_a_request_that_was_not_sent_may_give_way() -> None:
    assert may_give_way(requested())


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(requested(asked_at=NOW), id="EC2 was asked"),
        pytest.param(requested(claims=()), id="nobody needs it"),
        pytest.param(requested(claims=(Claim("a", 1, GPU, NOW), Claim("b", 1, GPU, NOW))), id="others joined"),
        pytest.param(requested(claims=(Claim("bert-1", 1, EIGHT, NOW),)), id="its job takes all of it"),
        pytest.param(requested(number=2), id="its job has moved before"),
        pytest.param(requested(claims=(Claim("resnet-1", 1, GPU, NOW),)), id="another job requested it"),
    ],
)
def test_any_other_is_kept(kept: Machine) -> None:
    assert not may_give_way(kept)


def test_the_first_older_machine_with_room_takes_the_job() -> None:
    full = older(claims=(Claim("resnet-1", 1, EIGHT, NOW),))
    first, second = older(), replace(older(), machine_id="m-second")

    assert find_older(requested(), [full, first, second]) is first


def test_one_that_ec2_chose_the_type_of_takes_it_too() -> None:
    ready = older(state=MachineState.READY, request=fleet_request(*OVERRIDES), offering=offering())

    assert find_older(requested(), [ready]) is ready


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(requested("resnet-1", created_at=NOW + timedelta(seconds=1)), id="younger"),
        pytest.param(requested(), id="itself"),
        pytest.param(older(request=fleet_request(override("g6.xlarge", capacity=EIGHT))), id="another type"),
        pytest.param(older(warned_at=NOW), id="EC2 interrupts it"),
        pytest.param(older(usd_per_hour=0.41), id="at a higher price"),
        pytest.param(older(state=MachineState.ENDING), id="ending"),
    ],
)
def test_no_other_does(other: Machine) -> None:
    assert find_older(requested(), [other]) is None


def test_of_two_that_were_requested_at_the_same_time_one_gives_way() -> None:
    both = [requested("bert-1"), requested("resnet-1")]

    assert sorted(find_older(each, both) is None for each in both) == [False, True]
