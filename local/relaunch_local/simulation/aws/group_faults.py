"""What goes wrong with machines that one call launches together: partial answers, and hosts that differ.

A scenario switches them on by `MachineScenario.group_faults`; a launch of one machine draws none of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from relaunch_local.ecs.engine.fleet import FleetFault
from relaunch_local.ecs.engine.settings import HostPlan, InstanceShape
from relaunch_local.simulation.chance import Chance

IN_PART = "group-launched-in-part"
"""EC2 launches fewer than the minimum, and says which."""
BESIDE_ERRORS = "group-launched-beside-errors"
"""EC2 launches all, and names an error beside them."""
TWO_ERRORS = "group-refused-with-two-errors"
"""The configuration is at fault, and UnfulfillableCapacity stands beside the error that says so."""
SEEN_IN_PARTS = "group-seen-in-parts"
"""DescribeInstances knows some of the machines a minute later than the others."""
WITHOUT_ADDRESSES = "group-without-addresses"
"""DescribeInstances tells the addresses of some of the machines a minute later."""
ANSWERED_IN_PART = "group-answered-in-part"
"""A function dies that has saved what EC2 answered for some machines of a group, and not for the others."""
NEVER_JOINS = "group-machine-never-joins"
LACKS_A_GPU = "group-machine-lacks-a-gpu"
RETIRED = "group-revision-deregistered"
"""Somebody deregisters the derived revision of a gang before RunTask is sent the next rank."""
LOST = "group-machines-lost"
"""Some or all machines of a group end in the same second, without a warning."""
WARNED = "group-machines-warned"
"""Two machines of a group are warned, in the same second or within a minute, in any order."""
RECLAIMED = "group-reclaimed"
"""Some or all spot machines of a group are warned in the same second."""

GROUP_FAULTS: Mapping[str, float] = {
    IN_PART: 0.04,
    BESIDE_ERRORS: 0.05,
    TWO_ERRORS: 0.03,
    SEEN_IN_PARTS: 0.15,
    WITHOUT_ADDRESSES: 0.1,
    ANSWERED_IN_PART: 0.05,
    NEVER_JOINS: 0.05,
    LACKS_A_GPU: 0.05,
    RETIRED: 0.05,
    LOST: 0.5,
    WARNED: 0.5,
    RECLAIMED: 0.5,
}
"""How often each of them happens: to a launch, to a machine that learns of one, to a rank that another one follows,
or of the last three when one is looked for."""

_LATE_SECONDS = (10.0, 60.0)


@dataclass(slots=True)
class GroupLaunchFaults:
    """Draws what goes wrong with the launches of groups, from streams of its own."""

    chance: Chance
    shares: Mapping[str, float] = field(default_factory=dict)
    """How often, by kind; a kind that is missing never happens."""

    def answer(self, machines: int, note: str) -> FleetFault | None:
        """Return how the answer to a launch of so many machines goes wrong, None if it does not."""
        dice = self.chance.stream("group-faults/answers")
        if machines < 2:
            return None
        if self._strikes(IN_PART, note):
            return FleetFault(launched=dice.randint(1, machines - 1))
        if self._strikes(BESIDE_ERRORS, note):
            return FleetFault(beside="InsufficientInstanceCapacity")
        if self._strikes(TWO_ERRORS, note):
            return FleetFault("InvalidParameterCombination", and_code="UnfulfillableCapacity")
        return None

    def part(self, machines: int, note: str) -> FleetFault | None:
        """Return how RunInstances launches fewer machines than the minimum, None if it does not."""
        if machines < 2 or not self._strikes(IN_PART, note):
            return None
        return FleetFault(launched=self.chance.stream("group-faults/parts").randint(1, machines - 1))

    def plans(self, plans: Sequence[HostPlan], shape: InstanceShape | None, note: str) -> list[HostPlan]:
        """Return the plans of the hosts of one launch, with what goes wrong in the group."""
        changed = [*plans]
        dice = self.chance.stream("group-faults/hosts")
        if len(plans) < 2:
            return changed
        if self._strikes(SEEN_IN_PARTS, note):
            for index in dice.sample(range(len(plans)), dice.randint(1, len(plans) - 1)):
                changed[index] = replace(changed[index], visibility=dice.uniform(*_LATE_SECONDS))
        if self._strikes(WITHOUT_ADDRESSES, note):
            for index in dice.sample(range(len(plans)), dice.randint(1, len(plans))):
                changed[index] = replace(changed[index], addressed_after=dice.uniform(*_LATE_SECONDS))
        one = dice.randrange(len(plans))
        if self._strikes(NEVER_JOINS, note):
            changed[one] = replace(changed[one], joins=False)
        elif shape is not None and shape.gpus and self._strikes(LACKS_A_GPU, note):
            changed[one] = replace(changed[one], gpus=shape.gpus - 1, other_gpus_after=None)
        return changed

    def are_others_untold(self, note: str) -> bool:
        """Return whether the function dies that has just saved what EC2 answered for one machine of a group."""
        return self._strikes(ANSWERED_IN_PART, note)

    def _strikes(self, kind: str, note: str) -> bool:
        return kind in self.shares and self.chance.strikes(kind, self.shares[kind], note=note)
