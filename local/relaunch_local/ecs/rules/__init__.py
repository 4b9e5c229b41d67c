"""ECS's rules for requests: validation, requirements, rate limits.

Imports clock, errors, and the core's reading of task definitions.
"""
