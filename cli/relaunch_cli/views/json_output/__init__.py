"""The JSON of `--json`, documented in docs/command.md: keys are added, never renamed or removed.

Times are ISO 8601 in UTC, money is in USD, durations are in seconds.
"""

from relaunch_cli.views.json_output.jobs import explanation_json as explanation_shape

__all__ = ["explanation_shape"]
