"""Deterministic simulation: the whole application under one seeded scheduler and one virtual clock, with faults.

The real use cases, decision core, readers of messages and adapters for ECS, S3, ECR and SQS run over the ECS simulator
and over models of SQS, EventBridge, Lambda and S3. Functions run as greenlets. At every call of
AWS another function may run, the call may fail before or after it takes effect, and the function may be killed.

`make simulate SEEDS=2000`, or::

    report = run_seeds(range(2_000), Options())
    print(report.summary_line())

A run is determined by its seed: `python -m relaunch_local.simulation --seed 17 --trace` replays a run exactly.
"""

from relaunch_local.simulation.campaign import Report, run_seeds
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedResult, run_seed

__all__ = ["Options", "Report", "SeedResult", "run_seed", "run_seeds"]
