"""Gangs in the cluster of a company, for scenarios: how many pods, on which server, and whether a queue admits them.

A scenario takes them from streams of their own, so that seeds without them keep theirs.
"""

from dataclasses import replace

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.targets import Target
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.cluster_scenario import add_cluster
from relaunch_local.simulation.gang_scenario import draw_gang
from relaunch_local.simulation.scenario import CHECKPOINTS, Scenario

_EVERY = 21
_FIRST = 341
_NODES = (2, 2, 3, 4)
_MINORS = (24, 25, 26, 31, 36, 36)
_TOO_OLD = 20
_TOO_OLD_SHARE = 0.05
_QUEUE_SHARE = 0.4
_GPUS_OF_A_NODE = 2


def has_cluster_gang(seed: int) -> bool:
    """Return whether a seed has a cluster whose jobs have several nodes: each twenty-first, for the sake of others."""
    return seed >= _FIRST and (seed - _FIRST) % _EVERY == 0


def gains_cluster(seed: int) -> bool:
    """Return whether a company without a cluster is given one where every company is to have gangs: each second is."""
    return seed % 2 == 0


def with_cluster_gang(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the jobs on the cluster of a company, which it is given if it has none, have several nodes."""
    if scenario.burst_family:
        return scenario
    if scenario.cluster is None:
        scenario = add_cluster(chance, scenario)
    cluster = scenario.cluster
    if cluster is None or cluster.definition.kubernetes is None:
        raise AssertionError("a company was to get a cluster")
    dice = chance.stream("scenario/cluster-gang")
    given = cluster.definition
    recipe = replace(scenario.recipes[given.name], checkpoint_seconds=dice.uniform(60.0, 600.0))
    planned = draw_gang(dice, recipe)
    nodes = dice.choice(_NODES)
    gang = replace(planned.recipe.gang, failing_rank=dice.randrange(nodes))
    early = gang.early_rank if gang.early_rank is None else gang.early_rank % nodes
    environment = {**given.environment, **planned.environment}
    # ACS admits pods itself, and has no queue that Relaunch knows of.
    has_queue = dice.random() < _QUEUE_SHARE and given.target is not Target.ACS
    definition = replace(
        given,
        nodes=nodes,
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        environment=environment,
        kubernetes=replace(cluster.definition.kubernetes, queue="team-a" if has_queue else ""),
        checkpoint_uri=f"s3://{CHECKPOINTS}/{given.name}/",
        # Two that each hold half of the nodes which they need would meet again and again: that is what queues are for.
        max_running_jobs=given.max_running_jobs if has_queue or given.target is Target.ACK else 1,
    )
    is_old = dice.random() < _TOO_OLD_SHARE
    minor = _TOO_OLD if is_old else dice.choice(_MINORS)
    room = -(-nodes // _GPUS_OF_A_NODE) + dice.choice((0, 0, 1))
    # Nodes are on spot and on demand in turn: there must be as many of each.
    room *= 1 if cluster.labels is None else 2
    changed = replace(cluster, definition=definition, minor=minor, nodes=room, gpu_sharing=None)
    own = replace(planned.recipe, gang=replace(gang, early_rank=early))
    return replace(scenario, cluster=changed, recipes={**scenario.recipes, given.name: own})
