"""The JSON of `--json`, documented in docs/command.md: keys are added, never renamed or removed.

Times are ISO 8601 in UTC, money is in USD, durations are in seconds.
"""
