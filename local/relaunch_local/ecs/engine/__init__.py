"""The simulated region: clusters, instances, tasks, and how they change. Imports rules, processes, clock and errors."""
