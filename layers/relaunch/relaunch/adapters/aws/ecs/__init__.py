"""ECS: tasks, container instances, events and task definitions. Imports ports and the core."""
