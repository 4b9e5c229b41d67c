"""ECS's rules for requests: validation, requirements, query language, rate limits. Imports clock and errors."""
