"""Invariants at every step and at the end, traces, and coverage of the transition table."""
