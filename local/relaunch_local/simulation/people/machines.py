"""Plans beside machines that run already: what is left of the vCPU quotas of an account.

What counts is in "Amazon EC2 service quotas": the vCPUs of the instances that run, whatever they were asked for as.
A request that EC2 has not answered may become any of the types that it names.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.quota_use import room_of_quotas
from relaunch.core.machines.machine import FleetOverride, FleetRequest, Machine, MachineState, Resources
from relaunch.core.offerings.offering import Offering
from relaunch.usecases.load_offerings import AvailableOfferings
from relaunch.usecases.plan_jobs import plan_on
from relaunch_local.simulation.checks.record import Check
from relaunch_local.simulation.people.plans import QUOTAS, Wanted, asked_for, draw_offerings, group_of

_MOST_MACHINES = 4
_MOST_TYPES = 3
_MOST = 3
# As many as an instance of some of the types has, or one less.
_LEFT = (3, 4, 7, 8)
_WANTED = Wanted(
    gpus=1,
    gpu_gib=0,
    models=(),
    capability=None,
    neuron_devices=0,
    vcpus=1,
    memory_gib=1,
    instance_types=(),
    purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
    max_price=None,
)
_CPU_UNITS = 1024
Group = tuple[str, PurchaseOption]


def ask_beside_machines(check: Check, dice: random.Random, now: datetime) -> None:
    """Check the plan of a job with one GPU beside machines in every state, some times."""
    for _ in range(_MOST):
        drawn = draw_offerings(dice, now)
        machines = [_draw_machine(dice, number, drawn, now) for number in range(dice.randint(2, _MOST_MACHINES))]
        left = {key: dice.choice(_LEFT) for key in QUOTAS}
        _ask_beside(check, dice, machines, drawn, left, now)


def _ask_beside(
    check: Check,
    dice: random.Random,
    machines: Sequence[Machine],
    drawn: Sequence[Offering],
    left: Mapping[Group, int],
    now: datetime,
) -> None:
    taken = _taken(machines, drawn)
    quotas = {code: left[key] + taken.get(key, 0) for key, code in QUOTAS.items()}
    definition, revision = asked_for(_WANTED, dice)
    try:
        catalogue = {each.instance_type.name: each.instance_type for each in drawn}
        limits = replace(StackLimits().selection, quotas=room_of_quotas(quotas, (), catalogue, machines))
        plan = plan_on(AvailableOfferings(now, tuple(drawn), {}, limits), definition, revision)
        kept = {each.key for each in plan.selection.kept} if plan.selection is not None else set()
        problem = plan.problem
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody gets a plan
        kept = set()
        problem = repr(error)
    sold = [each for each in drawn if _WANTED.fits(each.instance_type) and _WANTED.buys(each)]
    sold = [each for each in sold if each.instance_type.vcpus <= quotas.get(QUOTAS.get(group_of(each), ""), math.inf)]
    # A task that leaves room for another one may come to a machine that runs: that takes no more of a quota.
    filled = {each.key for each in sold if each.instance_type.gpu_count == _WANTED.gpus}
    expected = {each.key for each in sold if each.instance_type.vcpus <= left.get(group_of(each), math.inf)} & filled
    kept &= filled
    difference = f"{sorted(map(str, kept - expected))} too much, {sorted(map(str, expected - kept))} missing"
    message = f"{left} vCPUs are left: {difference} ({problem})"
    check("a plan leaves to machines that run what they take of a quota", kept == expected, message)


def _draw_machine(dice: random.Random, number: int, drawn: Sequence[Offering], now: datetime) -> Machine:
    """Return a machine of one purchase option: asked for, launched as one of its types, or gone."""
    purchase = dice.choice((PurchaseOption.SPOT, PurchaseOption.ON_DEMAND))
    letters = dice.choice(("g", "g", "p"))
    sold = [each for each in drawn if each.purchase is purchase and each.instance_type.name.startswith(letters)]
    asked = dice.sample(sold, min(dice.randint(1, _MOST_TYPES), len(sold)))
    overrides = tuple(
        FleetOverride(each.key, "subnet-1", 1.0, Resources(each.instance_type.vcpus * _CPU_UNITS)) for each in asked
    )
    request = FleetRequest(f"token-{number}", purchase, "lt-1", "1", overrides)
    state = dice.choice((MachineState.REQUESTED, MachineState.STARTING, MachineState.READY, MachineState.GONE))
    chosen = None if state is MachineState.REQUESTED else dice.choice(asked).key
    return Machine(f"m-{number:024x}", request, now, state, offering=chosen)


def _taken(machines: Sequence[Machine], drawn: Sequence[Offering]) -> Mapping[Group, int]:
    """Return the vCPUs that machines take: those of their types, or the most that a request may come to."""
    sold = {each.key: each for each in drawn}
    taken: dict[Group, int] = {}
    for machine in (each for each in machines if each.state is not MachineState.GONE):
        may_be = [machine.offering] if machine.offering else [each.offering for each in machine.request.overrides]
        most: dict[Group, int] = {}
        for offering in (sold[key] for key in may_be):
            group = group_of(offering)
            most[group] = max(most.get(group, 0), offering.instance_type.vcpus)
        for group, vcpus in most.items():
            taken[group] = taken.get(group, 0) + vcpus
    return taken
