"""Definitions and the capacity memory in memory: what tests and the simulation share."""

from relaunch_local.in_memory.definitions import InMemoryCapacity, InMemoryDefinitions

__all__ = ["InMemoryCapacity", "InMemoryDefinitions"]
