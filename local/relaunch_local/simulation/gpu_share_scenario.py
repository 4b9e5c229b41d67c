"""The companies of some seeds whose trainings need a share of a GPU, so that several tasks run on one."""

import random
from dataclasses import replace

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch_local.simulation.scenario import Scenario

_SHARE_OF_SEEDS = 0.06
# So small that two tasks fit on an instance with one GPU.
_CONTAINER = {"cpu": 1_024, "memory": 3_072}


def with_gpu_shares(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let definitions require shares of GPUs, which ECS places side by side; not where times are promised."""
    draw = dice.random()
    is_spared = scenario.has_close_deadlines or scenario.returning or scenario.has_shortages or scenario.burst_family
    has_others = any(each.accelerator.gpu is None for each in scenario.definitions) or scenario.task_definitions
    if draw >= _SHARE_OF_SEEDS or is_spared or has_others or scenario.sidecars:
        return scenario
    definitions = []
    for each in scenario.definitions:
        gpu = GpuRequirement(
            count=1, memory_mib=dice.choice((2, 4, 6)) * 1_024, compute_percent=dice.choice((10, 30, 50))
        )
        definitions.append(replace(each, accelerator=AcceleratorRequirement(gpu=gpu), container="main"))
    members = {each.name: {"container": _CONTAINER} for each in definitions}
    return replace(scenario, definitions=tuple(definitions), task_definitions=members)
