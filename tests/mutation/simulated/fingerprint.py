"""What came of a seed's run, in a few bytes."""

import hashlib

from relaunch_local.simulation.run import SeedResult


def fingerprint(result: SeedResult) -> str:
    """Return a digest of everything that the run counted: two runs with one fingerprint went the same way."""
    parts = (result.jobs, result.tasks, result.steps, result.simulated_seconds)
    counters = (result.happened, result.checks, result.ends, result.decided_by)
    counted = [sorted((str(key), count) for key, count in counter.items()) for counter in counters]
    return hashlib.sha256(repr((parts, counted)).encode()).hexdigest()[:12]
