"""ECS task definitions as ECS reads them: what they reserve, their constraints, and what each member means to Relaunch.

Imports nothing else of the core: the simulator of ECS (relaunch_local.ecs) reads task definitions by the same rules.
"""
