"""ECS: the cluster as the target of tasks, its events, and its task definitions. Imports ports and the core."""
