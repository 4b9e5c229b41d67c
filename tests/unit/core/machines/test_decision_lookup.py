"""When a machine is due, until when it is kept, and whether it has room."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.stored_machines import make_claim, make_gone, make_machine, make_override
from relaunch.core.machines.decision import due_at, gone_at, has_room
from relaunch.core.machines.machine import DeregisterNode, FleetRequest, Machine, MachineState, Resources

LIVING = [state for state in MachineState if state is not MachineState.GONE]
LATER = NOW + timedelta(hours=1)


def with_capacity(capacity: Resources, *claimed: Resources) -> Machine:
    """Return a machine that offers this, of which jobs claimed that."""
    override = make_override(capacity=capacity)
    claims = tuple(
        make_claim(
            f"job-{number}",
            cpu_units=each.cpu_units,
            memory_mib=each.memory_mib,
            gpus=each.gpus,
            neuron_devices=each.neuron_devices,
        )
        for number, each in enumerate(claimed)
    )
    request = FleetRequest("t", override.offering.purchase, "lt-1", "7", (override,))
    return make_machine(request=request, claims=claims)


class TestDueAt:
    @pytest.mark.parametrize("state", LIVING)
    def test_a_machine_that_is_not_gone_is_due_at_its_time(self, state: MachineState) -> None:
        assert due_at(make_machine(state=state, wake_at=LATER)) == LATER

    @pytest.mark.parametrize("state", LIVING)
    def test_one_that_nobody_would_look_at_again_is_refused(self, state: MachineState) -> None:
        with pytest.raises(ValueError, match=f"machine m-1 is {state} and has no wake_at"):
            due_at(make_machine(state=state, wake_at=None))

    def test_one_that_is_gone_is_not_due(self) -> None:
        assert due_at(make_machine(state=MachineState.GONE, wake_at=LATER)) is None

    def test_one_that_is_gone_is_due_while_effects_are_pending(self) -> None:
        gone = make_gone(make_machine(created_at=NOW - timedelta(hours=1)), pending=(DeregisterNode("node"),))
        assert due_at(gone) == NOW
        waking = make_machine(state=MachineState.GONE, wake_at=LATER, pending=(DeregisterNode("node"),))
        assert due_at(waking) == LATER


class TestGoneAt:
    @pytest.mark.parametrize("state", LIVING)
    def test_a_machine_that_is_not_gone_is_not_gone_since_any_time(self, state: MachineState) -> None:
        assert gone_at(make_machine(state=state, state_since=NOW)) is None

    def test_one_that_is_gone_is_so_since_its_state_began(self) -> None:
        assert gone_at(make_machine(state=MachineState.GONE, state_since=LATER)) == LATER
        assert gone_at(make_machine(state=MachineState.GONE)) == NOW


class TestHasRoom:
    @pytest.mark.parametrize("state", MachineState)
    def test_a_machine_without_claims_has_room_while_a_job_can_claim_it(self, state: MachineState) -> None:
        assert has_room(make_machine(state=state)) == state.is_usable

    def test_one_that_was_warned_has_none(self) -> None:
        assert not has_room(make_machine(warned_at=NOW))

    @pytest.mark.parametrize(
        ("capacity", "claimed", "expected"),
        [
            # The last percent of a GPU is a share.
            (Resources(4096, 15_000, 1), Resources(1024, 1024, 0.99), True),
            (Resources(4096, 15_000, 1), Resources(1024, 1024, 0.995), False),
            (Resources(4096, 15_000, 4), Resources(1024, 1024, 4), False),
            (Resources(4096, 15_000, 0.25), Resources(1024, 1024, 0.25), False),
            (Resources(4096, 15_000, 1), Resources(4096, 1024, 0.5), False),
            (Resources(4096, 15_000, 1), Resources(1024, 15_000, 0.5), False),
            (Resources(4096, 15_000, 1), Resources(4095, 14_999, 0.5), True),
            (Resources(4096, 15_000, neuron_devices=2), Resources(1024, 1024, neuron_devices=1), True),
            (Resources(4096, 15_000, neuron_devices=2), Resources(1024, 1024, neuron_devices=2), False),
            (Resources(4096, 15_000, neuron_devices=2), Resources(4096, 1024, neuron_devices=1), False),
            # Without accelerators.
            (Resources(4096, 15_000), Resources(1024, 1024), True),
            (Resources(4096, 15_000), Resources(4096, 1024), False),
            (Resources(4096, 15_000), Resources(1024, 15_000), False),
        ],
    )
    def test_the_rest_must_have_cpu_memory_and_some_of_the_accelerators(
        self, capacity: Resources, claimed: Resources, expected: bool
    ) -> None:
        assert has_room(with_capacity(capacity, claimed)) is expected

    def test_ten_tenths_of_a_gpu_leave_nothing(self) -> None:
        tenth = Resources(1, 1, 0.1)
        capacity = Resources(4096, 15_000, 1)
        assert has_room(with_capacity(capacity, *[tenth] * 9))
        assert not has_room(with_capacity(capacity, *[tenth] * 10))
