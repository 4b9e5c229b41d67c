"""Use cases: load, decide, save, act."""
