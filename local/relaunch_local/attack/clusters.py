"""Attacks by a cluster and on one: its kubeconfig, its answers, and definitions that ask for more than is allowed."""

import random
from collections.abc import Iterator

from relaunch_local.attack.attempts import Attempt
from relaunch_local.attack.cluster_answers import cluster_answers
from relaunch_local.attack.kubeconfigs import kubeconfigs
from relaunch_local.attack.pod_definitions import pod_definitions


def clusters(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Make a third of the attempts with each of the three; what is not drawn is tried beside them."""
    third = count // 3
    yield from kubeconfigs(dice, third)
    yield from cluster_answers(dice, third)
    yield from pod_definitions(dice, count - 2 * third)
