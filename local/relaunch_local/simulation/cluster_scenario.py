"""The ACK cluster of some seeds: one definition whose jobs run there, its trainings, and its events."""

import random
from dataclasses import replace

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition, RetryRules, S3Trigger
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch_local.simulation.aws.trainings import Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.scenario import BUCKET, CHECKPOINTS, ClusterScenario, PlannedEvent, Scenario

NAME = "atari"
IMAGE = "registry.cn-beijing.aliyuncs.com/acme/atari:1"
_SHARE_OF_SEEDS = 0.1
_OLD_SERVER = 20
_NEW_SERVER = 36


def with_cluster(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some companies have an ACK cluster beside what they have on AWS."""
    dice = chance.stream("scenario/cluster")
    if dice.random() >= _SHARE_OF_SEEDS or scenario.burst_family:
        return scenario
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
    return replace(
        scenario,
        cluster=cluster,
        recipes={**scenario.recipes, NAME: recipe},
        events=(*scenario.events, *events),
    )


def _draw_event(dice: random.Random, chaos_seconds: float, number: int) -> PlannedEvent:
    kind = dice.choice(("push", "upload", "request"))
    token = f"{dice.getrandbits(160):040x}" if kind == "push" else f"{kind}-cluster-{number:02d}"
    return PlannedEvent(dice.uniform(5.0, chaos_seconds * 0.6), kind, NAME, token)
