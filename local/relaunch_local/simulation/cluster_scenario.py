"""The cluster of some seeds, of any kind: one definition whose jobs run there, its trainings, and its events."""

import random
from dataclasses import replace

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition, RetryRules, S3Trigger
from relaunch.core.definitions.kubernetes_workload import GpuSharing, KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch_local.simulation.aws.outages import KUBERNETES, STS, Kind, Outage
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.scenario import BUCKET, CHECKPOINTS, ClusterScenario, PlannedEvent, Scenario

NAME = "atari"
IMAGE = "registry.cn-beijing.aliyuncs.com/acme/atari:1"
NODE_LABELS = NodeLabels(
    spot=NodeLabel("karpenter.sh/capacity-type", "spot"), on_demand=NodeLabel("karpenter.sh/capacity-type", "on-demand")
)
_SHARE_OF_SEEDS = 0.1
_OUTAGES_SHARE = 0.3
_OLD_SERVER = 20
_NEW_SERVER = 36


def with_cluster(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some companies have a cluster beside what they have on AWS."""
    dice = chance.stream("scenario/cluster")
    if dice.random() >= _SHARE_OF_SEEDS or scenario.burst_family:
        return scenario
    return _draw_cluster(chance, dice, scenario)


def add_cluster(chance: Chance, scenario: Scenario) -> Scenario:
    """Give a cluster to a company that has none."""
    return _draw_cluster(chance, chance.stream("scenario/added-cluster"), scenario)


def _draw_cluster(chance: Chance, dice: random.Random, scenario: Scenario) -> Scenario:
    saves = dice.random() < 0.8
    definition = JobDefinition(
        name=NAME,
        task_definition="",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        target=Target.ACK,
        kubernetes=KubernetesWorkload(image=IMAGE, vcpus=2.0, memory_mib=4_096),
        triggers=(
            GithubTrigger(f"acme/{NAME}", "push", branches=("main",)),
            S3Trigger(BUCKET, prefix=f"{NAME}/", suffix=".manifest"),
        ),
        command=("train", "--fast"),
        environment={"RECIPE": NAME},
        purchase=PurchasePolicy.ON_DEMAND,
        checkpoint_uri=f"s3://{CHECKPOINTS}/{NAME}/" if saves else None,
        max_running_jobs=dice.choice((1, 2, 5)),
        max_failures=dice.choice((0, 1, 2)),
        retry=RetryRules(),
    )
    recipe = Recipe(
        work_seconds=dice.uniform(300.0, 4_000.0),
        checkpoint_seconds=dice.uniform(60.0, 600.0) if saves else None,
        save_seconds=dice.uniform(1.0, 20.0),
        failures=dice.choice((0, 0, 0, 1, 2)),
        exit_code=dice.choice((1, 2, 137)),
        failure_after_seconds=dice.uniform(30.0, 900.0),
        ignores_sigterm=dice.random() < 0.1,
    )
    cluster = ClusterScenario(definition, dice.choice((_OLD_SERVER, _NEW_SERVER)), dice.randint(1, 3))
    events = [_draw_event(dice, scenario.chaos_seconds, number) for number in range(dice.randint(2, 4))]
    cluster = _vary_cluster(chance.stream("scenario/cluster/kind"), cluster)
    cluster = _let_be_elsewhere(chance.stream("scenario/cluster/elsewhere"), cluster)
    grants = scenario.limits.pods if cluster.labels is None else PodGrants(nodes=cluster.labels)
    return replace(
        scenario,
        cluster=cluster,
        limits=replace(scenario.limits, pods=grants),
        recipes={**scenario.recipes, NAME: recipe},
        events=(*scenario.events, *events),
        outages=(*scenario.outages, *_draw_outages(chance.stream("scenario/cluster/outages"), scenario)),
    )


def _vary_cluster(dice: random.Random, cluster: ClusterScenario) -> ClusterScenario:
    """Let a third of the clusters share GPUs, and let a third be ACS, where pods have GPUs of a model."""
    kind = dice.choice(("ack", "shared", "acs"))
    if kind == "ack":
        return cluster
    definition = cluster.definition
    workload = definition.kubernetes
    if workload is None:
        raise AssertionError("the definition is for a cluster")
    if kind == "acs":
        purchase = dice.choice((PurchasePolicy.SPOT, PurchasePolicy.ON_DEMAND, PurchasePolicy.SPOT_THEN_ON_DEMAND))
        on_acs = replace(workload, gpu_model="T4", gpu_driver=dice.choice(("", "535.161.08")))
        return replace(cluster, definition=replace(definition, target=Target.ACS, kubernetes=on_acs, purchase=purchase))
    percent = dice.choice((None, 30, 60))
    sharing = GpuSharing.CGPU if percent is None else GpuSharing.CORE_MEM
    gpu = GpuRequirement(count=1, memory_mib=dice.choice((4, 10)) * 1_024, compute_percent=percent)
    shared = replace(definition, accelerator=AcceleratorRequirement(gpu=gpu))
    return replace(cluster, definition=shared, gpu_sharing=sharing)


def _let_be_elsewhere(dice: random.Random, cluster: ClusterScenario) -> ClusterScenario:
    """Let half of the clusters with whole GPUs be no cluster of Alibaba Cloud, with nodes on spot and others."""
    definition = cluster.definition
    workload = definition.kubernetes
    if definition.target is not Target.ACK or cluster.gpu_sharing is not None or dice.random() < 0.5:
        return cluster
    if workload is None:
        raise AssertionError("the definition is for a cluster")
    purchase = dice.choice((PurchasePolicy.SPOT, PurchasePolicy.ON_DEMAND, PurchasePolicy.SPOT_THEN_ON_DEMAND))
    elsewhere = replace(definition, target=Target.KUBERNETES, purchase=purchase)
    reads_nodes = dice.random() < 0.8
    return replace(cluster, definition=elsewhere, nodes=cluster.nodes + 1, labels=NODE_LABELS, reads_nodes=reads_nodes)


def _draw_outages(dice: random.Random, scenario: Scenario) -> list[Outage]:
    """Let the cluster's API, or the STS that signs in to it, be away in some runs that spare nothing else."""
    if scenario.outages or dice.random() >= _OUTAGES_SHARE:
        return []
    seconds = 60.0 * 180.0 ** dice.random()
    begins_at = dice.uniform(0.0, scenario.chaos_seconds)
    return [Outage(dice.choice((KUBERNETES, STS)), begins_at, seconds, dice.choice(tuple(Kind)))]


def _draw_event(dice: random.Random, chaos_seconds: float, number: int) -> PlannedEvent:
    kind = dice.choice(("push", "upload", "request"))
    token = f"{dice.getrandbits(160):040x}" if kind == "push" else f"{kind}-cluster-{number:02d}"
    return PlannedEvent(dice.uniform(5.0, chaos_seconds * 0.6), kind, NAME, token)
