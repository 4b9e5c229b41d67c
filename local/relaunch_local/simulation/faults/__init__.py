"""Faults drawn from the seed: capacity, prices, instances, and rarer faults."""
