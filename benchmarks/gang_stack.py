"""Starts and interruptions of gangs on the simulated stack: what Relaunch does, where gang_recovery.py composes steps.

The application itself runs, over the queues, the table and the simulated EC2 and ECS of `make simulate`, without their
faults. A push starts a job of several nodes; some minutes later EC2 warns of as many of its machines as are lost; all
ranks save, and others resume. Boots and pulls are those that the other ways get.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from benchmarks import gang_steps as steps
from benchmarks.gang_lives import HOUR, MEASURES, NODES, Life, Machine, draw
from benchmarks.session import Session
from benchmarks.tables import Table, percentile
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.ecs.engine.settings import HostPlan
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.recovery import Way, scenario_of
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import Scenario

_LIVES_PER_ROUND = 4
_WORKED_SECONDS = (300.0, 3_600.0)
_Task = Mapping[str, object]
_PROGRAM = timedelta(seconds=steps.PROGRAM)


def live(first: Sequence[Machine], second: Sequence[Machine], lost: int, dice: Random) -> Life:
    """Return a life on the simulated stack, in which EC2 warns of `lost` machines in the same second.

    Raises:
        RuntimeError: the job did not run, or not again.
    """
    nodes = len(first)
    # The simulation sets budgets in seeds that end otherwise.
    seed = 10 * dice.randrange(2**28)
    account = SeedRun(seed, Options(without_faults=True, scenario=_scenario(seed, nodes))).account
    account.faulty_ec2.given_hosts.extend(_host(each, dice) for each in (*first, *second))
    try:
        return _live(account, nodes, lost, dice)
    finally:
        account.close()


def _host(machine: Machine, dice: Random) -> HostPlan:
    return HostPlan(
        boot=steps.USER_DATA * machine.boot,
        registration=(1 - steps.USER_DATA) * machine.boot,
        visibility=dice.uniform(0.0, 5.0),
        pull=machine.pull,
    )


def _scenario(seed: int, nodes: int) -> Scenario:
    base = scenario_of(seed, Way.OWN)
    (definition,) = base.definitions
    limits = replace(base.limits.machines, max_machines=4 * nodes)
    several = replace(definition, nodes=nodes, container="main", purchase=PurchasePolicy.SPOT)
    return replace(
        base,
        definitions=(several,),
        recipes={name: replace(each, save_seconds=steps.SAVING) for name, each in base.recipes.items()},
        limits=replace(base.limits, machines=limits),
        machines=replace(base.machines, limits=limits),
        task_definitions={definition.name: {"networkMode": "host"}},
    )


def _live(account: SimulatedAccount, nodes: int, lost: int, dice: Random) -> Life:
    event_at = account.started_at + timedelta(seconds=account.scenario.events[0].at_seconds)
    before = _await_ranks(account, nodes, 1)
    account.clock.advance(dice.uniform(*_WORKED_SECONDS))
    hosts = _hosts(account, before)
    warned_at = account.clock.now()
    for host in dice.sample(hosts, lost):
        account.simulator.instances.interrupt(host)
    after = _await_ranks(account, nodes, 2)
    account.clock.advance(steps.WARNING + steps.PROGRAM)
    started, again = (max(_time(each, "startedAt") for each in ranks) for ranks in (before, after))
    arns = {each["taskArn"] for each in before}
    signalled = [_time(each, "stoppingAt") for each in _ranks(account) if each["taskArn"] in arns]
    last_step = min(signalled)
    steps_again = again + _PROGRAM
    paid = [_paid(account, each, steps_again) for each in account.simulator.instances.by_id.values()]
    stepped = nodes * (last_step - started - _PROGRAM)
    without_step = steps_again - last_step
    kept = {each.arn for each in hosts}
    later = [each for each in _hosts(account, after) if each.arn not in kept]
    # Those that replace lost ones, beside others that are kept, boot while the tasks save.
    bare_again = _bare(later) + steps.SAVING if len(later) == nodes else max(_bare(later), steps.SAVING)
    return Life(
        start=(started - event_at).total_seconds(),
        sigterm=(max(signalled) - warned_at).total_seconds(),
        again=without_step.total_seconds(),
        own_start=(started - event_at).total_seconds() - _bare(hosts),
        own_again=without_step.total_seconds() - bare_again - steps.PROGRAM,
        idle=(sum(paid, timedelta(0)) - stepped).total_seconds(),
        lost=0.0,
    )


def _await_ranks(account: SimulatedAccount, nodes: int, generation: int) -> list[_Task]:
    """Let time pass until so many generations have run in all; return the ranks of the last one."""
    if not account.clock.run_until(lambda: len(_ranks(account)) >= generation * nodes):
        raise RuntimeError(f"the job of {nodes} nodes did not run {generation} times")
    return _ranks(account)[-nodes:]


def _ranks(account: SimulatedAccount) -> list[_Task]:
    """Return the tasks that have run, as ECS described them last, oldest first."""
    tasks = [task for of_job in account.invariants.tasks.values() for task in of_job.values() if "startedAt" in task]
    return sorted(tasks, key=lambda each: str(each["createdAt"]))


def _hosts(account: SimulatedAccount, ranks: Sequence[_Task]) -> list[Instance]:
    arns = {each["containerInstanceArn"] for each in ranks}
    return [each for each in account.simulator.instances.by_id.values() if each.arn in arns]


def _time(task: _Task, name: str) -> datetime:
    return datetime.fromisoformat(str(task[name]))


def _bare(hosts: Sequence[Instance]) -> float:
    """Return when all would run after their launch if nothing but boot and pull took time, in seconds."""
    ready = [at for each in hosts for at in (each.registered_at, each.pulled_at) if at is not None]
    return (max(ready) - min(each.launched_at for each in hosts)).total_seconds()


def _paid(account: SimulatedAccount, host: Instance, until: datetime) -> timedelta:
    """Return how long a machine is paid for; one that is kept, until the first step of the next generation."""
    (line,) = (each for each in account.simulator.instances.bill if each.instance_id == host.instance_id)
    return (line.billing_ended_at or until) - host.launched_at


def measure(session: Session) -> list[Table]:
    """Let gangs live on the simulated stack, and print what it takes."""
    count = session.rounds * _LIVES_PER_ROUND
    rows: list[tuple[str | int, ...]] = []
    for nodes in NODES:
        given = (draw(nodes, number) for number in range(count))
        lived = [live(each.first, each.second, each.lost, each.dice) for each in given]
        values = [[get(life) for life in lived] for get in MEASURES.values()]
        idle = [life.idle / HOUR for life in lived]
        paid = f"{percentile(idle, 50):.2f}, {percentile(idle, 95):.2f}"
        rows.append((nodes, *(f"{percentile(each, 50):.1f}, {percentile(each, 95):.1f}" for each in values), paid))
    notes = (
        f"{count} lives for each number of nodes, p50 and p95 in seconds, and in machine-hours, of the first of those",
        "that `gangs` composes: the application itself on the simulated account, without its faults. A program that",
        f"makes its first step {steps.PROGRAM:.0f} s after all run is reckoned in, as there.",
    )
    return [Table("Gangs on the simulated stack", ("nodes", *MEASURES, "paid without a step"), rows, notes)]
