"""Deterministic simulation: the whole application under one seeded scheduler and one clock, while everything fails.

The real use cases, decision core, readers of messages and adapters for ECS, S3, ECR and SQS run over the ECS simulator
and over models of SQS, EventBridge, Lambda and S3. Functions run as greenlets. Every call of a port is a place where
another function goes on, where the call may fail before or after it took effect, and where the function may be killed.

`make simulate SEEDS=2000`, or::

    report = run_seeds(range(2_000), Options())
    print(report.summary_line())

A seed decides everything: `python -m relaunch_local.simulation --seed 17 --trace` repeats a run exactly.
"""

from relaunch_local.simulation.campaign import Report, run_seeds
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedResult, run_seed

__all__ = ["Options", "Report", "SeedResult", "run_seed", "run_seeds"]
