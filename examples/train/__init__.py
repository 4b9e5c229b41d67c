"""A small, deterministic training that keeps Relaunch's checkpoint contract; `python -m train` runs it."""
