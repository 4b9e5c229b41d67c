"""Definitions and the capacity memory in memory: what tests and the simulation share."""

from relaunch_local.memory_definitions import InMemoryCapacity, InMemoryDefinitions

__all__ = ["InMemoryCapacity", "InMemoryDefinitions"]
