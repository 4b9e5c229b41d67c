"""Finds a minimal set of faults with which a seed still fails, by delta debugging over the injected faults."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedResult, run_seed


def invariant_of(violation: str) -> str:
    """Return the name of the violated invariant."""
    return violation[15:].partition(": ")[0]


def shrink(
    seed: int, options: Options, *, on_progress: Callable[[str], None] = lambda _text: None
) -> SeedResult | None:
    """Remove faults while the first violated invariant stays violated; return None if the seed violates none.

    The result is a set from which no single fault can be removed ("Simplifying and isolating failure-inducing input",
    Zeller and Hildebrandt, 2002).
    """
    quiet = replace(options, trace=False)
    whole = run_seed(seed, quiet)
    if not whole.violations:
        return None
    name = invariant_of(whole.violations[0])

    def fails(faults: Sequence[str]) -> bool:
        result = run_seed(seed, replace(quiet, allowed=frozenset(faults), until=name))
        return any(invariant_of(each) == name for each in result.violations)

    faults = [fault.identity for fault in whole.faults]
    if not fails(faults):
        on_progress("the faults alone do not reproduce the failure; the whole run is shown")
        return run_seed(seed, options)
    needed = minimize(faults, fails, on_progress)
    return run_seed(seed, replace(options, allowed=frozenset(needed)))


def minimize(
    items: Sequence[str], fails: Callable[[Sequence[str]], bool], on_progress: Callable[[str], None]
) -> list[str]:
    """Return a subset of the items that still fails, and from which no item can be removed."""
    if fails([]):
        return []
    needed = list(items)
    pieces = 2
    while len(needed) >= 2:
        size = -(-len(needed) // pieces)
        chunks = [needed[start : start + size] for start in range(0, len(needed), size)]
        smaller = _smaller(needed, chunks, fails)
        if smaller is not None:
            needed = smaller
            pieces = max(pieces - 1, 2) if len(smaller) > size else 2
            on_progress(f"{len(needed)} faults still make it fail")
        elif pieces >= len(needed):
            break
        else:
            pieces = min(pieces * 2, len(needed))
    return needed


def _smaller(
    needed: Sequence[str], chunks: Sequence[list[str]], fails: Callable[[Sequence[str]], bool]
) -> list[str] | None:
    for chunk in chunks:
        if len(chunks) > 1 and fails(chunk):
            return chunk
    for chunk in chunks:
        left = set(chunk)
        rest = [item for item in needed if item not in left]
        if len(chunks) > 2 and fails(rest):
            return rest
    return None
