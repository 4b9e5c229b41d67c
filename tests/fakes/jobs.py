"""The jobs table in memory: what tests and the simulation share."""

from relaunch_local.in_memory.jobs import InMemoryJobs

__all__ = ["InMemoryJobs"]
