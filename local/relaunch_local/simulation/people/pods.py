"""Plans of jobs with a share of a reserved GPU of ACS, which has them in whole percent of the card's memory.

Source: "Use shared GPU scheduling on GPU-HPN nodes", Container Compute Service.
"""

import json
import math
import random
from datetime import datetime

from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.usecases.plan_jobs import plan_on_kubernetes
from relaunch_local.simulation.checks.record import Check

_CARDS_GIB = (20, 48, 96)
_IMAGE = "registry.cn-beijing.aliyuncs.com/acme/atari:1"


def ask_for_shares(check: Check, dice: random.Random, now: datetime) -> None:
    """Check that who plans such a job learns how much more memory it gets than it asks for, and only then."""
    card_gib = dice.choice(_CARDS_GIB)
    asked_gib = dice.choice((card_gib // 4, dice.randint(1, card_gib - 1)))
    percent = math.ceil(100 * asked_gib / card_gib)
    pod = {
        "image": _IMAGE,
        "vcpus": 2,
        "memory": "4GiB",
        "compute_class": "gpu-hpn",
        "gpu_model": "L20",
        "card_memory": f"{card_gib}GiB",
    }
    gpu = {"count": 1, "memory": f"{asked_gib}GiB", "compute_percent": 30}
    written = {"target": "acs", "accelerator": {"gpu": gpu}, "kubernetes": pod}
    try:
        text = json.dumps({"jobs": {"asked": written}})
        (definition,) = parse_definitions(text, "relaunch.yaml", load_catalogue())
        plan = plan_on_kubernetes(definition, now, None)
        said = plan.notices
        whole = [each.gpu_count for each in plan.revision.containers] if plan.revision is not None else []
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody learns anything
        said = (repr(error), f"rounded up to {percent} %")
        whole = []
    rounded = [each for each in said if "rounded up" in each]
    is_whole = percent * card_gib == 100 * asked_gib
    is_told = (not rounded) if is_whole else (len(rounded) == 1 == len(said_of(rounded, percent)))
    is_told = is_told and not any("Error" in each for each in said)
    # A share is no whole GPU.
    check("a plan for a cluster asks for the GPUs of its job", whole == [0], f"a share: {whole}")
    check("a share that ACS rounds up is said to", is_told, f"{asked_gib} of {card_gib} GiB: {said}")


def said_of(texts: list[str], percent: int) -> list[str]:
    """Return the texts that name a percentage."""
    return [each for each in texts if f" {percent} %" in each]
