"""The simulated region: clusters, machines, tasks, and the clock that moves them. Imports rules and processes."""
