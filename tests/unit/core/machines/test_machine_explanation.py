"""What a job reads of the machine that it waits for."""

import pytest

from fakes.builders import NOW
from fakes.machines import INSTANCE, fleet_request, machine, override
from relaunch.core.machines.machine import MachineState, describe_machine, describe_request

REQUESTED, STARTING, READY, ENDING = list(MachineState)[:4]
ON = f"{INSTANCE} (g5.xlarge spot us-east-1a)"


@pytest.mark.parametrize(
    ("state", "fields", "words"),
    [
        (REQUESTED, {}, "EC2 is asked for g5.xlarge, g6.xlarge on spot in 2 zones"),
        (REQUESTED, {"asked_at": NOW}, "asked EC2 for g5.xlarge, g6.xlarge on spot in 2 zones"),
        (REQUESTED, {"reason": "throttled"}, "EC2 is asked for g5.xlarge, g6.xlarge on spot in 2 zones; throttled"),
        (STARTING, {}, f"{ON} is starting"),
        (STARTING, {"reason": "no GPU yet"}, f"{ON} is starting: no GPU yet"),
        (READY, {}, f"{ON} is ready"),
        (READY, {"reason": "EC2 will interrupt it"}, f"{ON} is ready: EC2 will interrupt it"),
        (ENDING, {}, f"{ON} is ending"),
        (ENDING, {"reason": "it never registered"}, "it never registered"),
    ],
)
def test_a_machine_says_how_far_it_is(state, fields, words: str):
    assert describe_machine(machine(state, **fields)) == words


def test_a_request_in_one_zone_names_it():
    request = fleet_request(override(), override("g6.xlarge"))

    assert describe_request(machine(request=request)) == "g5.xlarge, g6.xlarge on spot in us-east-1a"
