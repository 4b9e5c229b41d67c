"""The jobs table in memory: what tests and the simulation share."""

from relaunch_local.memory_jobs import InMemoryJobs

__all__ = ["InMemoryJobs"]
