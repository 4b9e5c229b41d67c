"""Starts and interruptions of gangs, Relaunch's way and SkyPilot's, from the steps that each takes (gang_steps.py).

Both get the same machines: of each number of nodes the same boots, pulls and losses are drawn. Nothing of either is run
here: what is compared are ways. What a warning is good for is in it, as only one of them hears it: its training saves
and stops, and the other one goes on until EC2 ends a machine, and loses what it did since its newest checkpoint.
"""

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heapify, heapreplace
from random import Random
from statistics import median

from benchmarks import gang_steps as steps
from benchmarks.gang_lives import HOUR, MEASURES, NODES, SEED, Life, Machine, draw
from benchmarks.session import Session
from benchmarks.tables import Table, percentile
from relaunch.core.lifecycle.survivors import LEAST_SHARE, expected_wait

_LIVES_PER_ROUND = 200
_CHECKPOINTS_APART = 1800.0


Way = Callable[[Sequence[Machine], Sequence[Machine], int, Random], Life]


def relaunch(first: Sequence[Machine], second: Sequence[Machine], lost: int, dice: Random) -> Life:
    """Return a life by Relaunch's way: those that live are kept where that is expected to cost less."""
    living = len(first) - lost
    boot = median(each.boot for each in first)
    is_kept = (
        living >= LEAST_SHARE * len(first) and expected_wait(len(first), lost, boot, 0.0, is_spot=True).is_worth_it
    )
    return (keeping if is_kept else giving_back)(first, second, lost, dice)


def giving_back(first: Sequence[Machine], second: Sequence[Machine], _lost: int, dice: Random) -> Life:
    """Return a life in which all are given back, and others asked for when all have stopped."""
    nodes = len(first)
    asked = dice.uniform(*steps.RELAUNCH_ASKED)
    up, bare = _by_relaunch(first)
    first_sigterm = dice.uniform(*steps.RELAUNCH_WARNED)
    sigterm = first_sigterm + steps.CALL * (nodes - 1)
    # All agree to save after the step in which the first of them hears of it.
    saved = first_sigterm + steps.SAVING
    ended = max(saved, sigterm) + dice.uniform(*steps.RELAUNCH_ENDED)
    asked_again = ended + dice.uniform(*steps.RELAUNCH_ASKED)
    up_again, bare_again = _by_relaunch(second)
    again = asked_again + up_again + steps.PROGRAM - first_sigterm
    paid = nodes * (up + up_again + 2 * steps.PROGRAM + ended - first_sigterm)
    own_again = again - bare_again - steps.SAVING - steps.PROGRAM
    return Life(asked + up, sigterm, again, asked + up - bare, own_again, paid, 0.0)


def keeping(first: Sequence[Machine], second: Sequence[Machine], lost: int, dice: Random) -> Life:
    """Return a life in which those that live are kept, and others asked for at the warning.

    It takes that EC2 has as many more in the same pool, and that the others of a warned machine are not warned later.
    """
    nodes = len(first)
    asked = dice.uniform(*steps.RELAUNCH_ASKED)
    up, bare = _by_relaunch(first)
    first_sigterm = dice.uniform(*steps.RELAUNCH_WARNED)
    sigterm = first_sigterm + steps.CALL * (nodes - 1)
    ended = max(first_sigterm + steps.SAVING, sigterm) + dice.uniform(*steps.RELAUNCH_ENDED)
    asked_again = sigterm + dice.uniform(*steps.RELAUNCH_ASKED)
    new = second[:lost]
    booted = asked_again + max(each.boot for each in new)
    pulled = asked_again + max(steps.USER_DATA * each.boot + each.pull for each in new)
    runs = max(max(booted, ended) + steps.CALL * nodes, pulled)
    again = runs + steps.PROGRAM - first_sigterm
    paid = nodes * (up + steps.PROGRAM + again) + lost * (ended - asked_again)
    own_again = runs - max(booted, pulled, ended) + asked_again - first_sigterm
    return Life(asked + up, sigterm, again, asked + up - bare, own_again, paid, 0.0)


def _by_relaunch(machines: Sequence[Machine]) -> tuple[float, float]:
    """Return when all run after EC2 has answered, and when they would if nothing but boot and pull took time.

    A machine pulls from its user data on, and the tasks are placed when all have booted.
    """
    booted = max(each.boot for each in machines)
    pulled = [steps.USER_DATA * each.boot + each.pull for each in machines]
    placed = (max(booted + steps.CALL * (rank + 1), end) for rank, end in enumerate(pulled))
    return max(placed), max(booted, *pulled)


def skypilot(
    first: Sequence[Machine],
    second: Sequence[Machine],
    lost: int,
    dice: Random,
    at_a_time: int = steps.SKYPILOT_AT_A_TIME,
    boot_share: float = 1.0,
) -> Life:
    """Return a life by SkyPilot's way; SSH answers after this share of a boot."""
    by = partial(_by_skypilot, dice=dice, at_a_time=at_a_time, boot_share=boot_share)
    nodes = len(first)
    claimed = dice.uniform(0.0, steps.SKYPILOT_CLAIM)
    start, bare, launched = by(first)
    look = dice.uniform(*steps.SKYPILOT_LOOK)
    has_lost_head = dice.random() < lost / nodes
    seen = dice.uniform(0.0, steps.SKYPILOT_POLL + look) + look + has_lost_head * steps.SKYPILOT_NO_ANSWER
    torn_down = seen + dice.uniform(*steps.SKYPILOT_TEARDOWN)
    start_again, bare_again, launched_again = by(second)
    again = torn_down + start_again + steps.PROGRAM
    paid = nodes * (start + start_again - launched - launched_again + 2 * steps.PROGRAM) + (nodes - lost) * torn_down
    undone = nodes * dice.uniform(0.0, _CHECKPOINTS_APART)
    own_again = again - bare_again - steps.PROGRAM
    # What is left has SIGTERM as it shuts down; what EC2 ends had it at the end of the warning.
    sigterm = steps.WARNING + (torn_down if lost < nodes else 0.0)
    return Life(claimed + start, sigterm, again, claimed + start - bare, own_again, paid, undone)


def _by_skypilot(
    machines: Sequence[Machine], dice: Random, at_a_time: int, boot_share: float
) -> tuple[float, float, float]:
    """Return when all run after a request, when they would if nothing but boot and pull took time, and the launch."""
    launched = dice.uniform(*steps.SKYPILOT_REQUEST) + steps.SKYPILOT_SET_UP
    booted = boot_share * max(each.boot for each in machines) + dice.uniform(0.0, steps.SKYPILOT_RUNNING_POLL)
    pulled = _in_turns([each.pull for each in machines], at_a_time)
    prepared = _in_turns([dice.uniform(*steps.SKYPILOT_RUNTIME) for _ in machines], at_a_time)
    started = launched + booted + pulled + prepared + dice.uniform(*steps.SKYPILOT_JOB)
    # It cannot pull while it boots: that is its own way, and not what the machines take.
    bare = max(max(each.boot, steps.USER_DATA * each.boot + each.pull) for each in machines)
    return started, bare, launched


def _in_turns(seconds: Sequence[float], at_a_time: int) -> float:
    """Return how long it takes to do them all, some at a time, each as soon as one is done."""
    busy = [0.0] * at_a_time
    heapify(busy)
    for each in seconds:
        heapreplace(busy, busy[0] + each)
    return max(busy)


_WAYS: dict[str, Way] = {
    "Relaunch": relaunch,
    "Relaunch, all given back": giving_back,
    "SkyPilot": skypilot,
    "SkyPilot, all nodes by SSH at once": partial(skypilot, at_a_time=max(NODES)),
    "the same, SSH after half a boot": partial(skypilot, at_a_time=max(NODES), boot_share=0.5),
}


def lives(nodes: int, count: int, seed: int = SEED) -> dict[str, list[Life]]:
    """Return lives of gangs of so many nodes, by way: each has the same machines and losses."""
    found: dict[str, list[Life]] = {way: [] for way in _WAYS}
    for number in range(count):
        given = draw(nodes, number, seed)
        for way, live in _WAYS.items():
            found[way].append(live(given.first, given.second, given.lost, given.dice))
    return found


def measure(session: Session) -> list[Table]:
    """Draw lives of gangs, and print what each way takes."""
    count = session.rounds * _LIVES_PER_ROUND
    drawn = {nodes: lives(nodes, count) for nodes in NODES}
    return [_times(drawn, count), _paid(drawn)]


def _times(drawn: dict[int, dict[str, list[Life]]], count: int) -> Table:
    rows: list[tuple[str | int, ...]] = []
    for nodes, by_way in drawn.items():
        for way, lived in by_way.items():
            values = [[get(life) for life in lived] for get in MEASURES.values()]
            rows.append((nodes, way, *(f"{percentile(each, 50):.0f}, {percentile(each, 95):.0f}" for each in values)))
    notes = (
        f"{count} lives for each number of nodes, p50 and p95 in seconds; the steps, and what they rest on, are in",
        "benchmarks/gang_steps.py. Own is what is neither boot, pull, saving nor training: for SkyPilot also that",
        "pulls begin after the boot, and take turns. Cold starts of functions are not in it, nor what EC2 has then.",
    )
    return Table("Gangs: started, and started again", ("nodes", "way", *MEASURES), rows, notes)


def _paid(drawn: dict[int, dict[str, list[Life]]]) -> Table:
    rows = []
    for nodes, by_way in drawn.items():
        for way, lived in by_way.items():
            idle = [life.idle / HOUR for life in lived]
            lost = [life.lost / HOUR for life in lived]
            rows.append((nodes, way, percentile(idle, 50), percentile(idle, 95), percentile(lost, 50)))
    columns = ("nodes", "way", "without a step p50", "p95", "steps lost p50")
    notes = (
        "Machine-hours of a job that is started, and started again once. Steps are lost where nothing is saved",
        f"after a warning: since the newest checkpoint, one every {_CHECKPOINTS_APART / 60:.0f} minutes. A program",
        "under SkyPilot can ask the instance's metadata for the warning and save by itself: then none are.",
    )
    return Table("Gangs: machine-hours paid without use", columns, rows, notes)
