"""Which files of a repository start a training when a push changes them: the workflow and the definition say the same.

GitHub and Relaunch read the patterns alike; a later one that begins with `!` takes back what an earlier one selects
("Workflow syntax for GitHub Actions", `on.<push|pull_request>.paths`).
"""

import json

from relaunch_cli.repository_setup.findings import DEFINITION_FILE, PLAN_FILE

WATCHED_PATHS = ("**", "!**.md", "!docs/**", f"!{DEFINITION_FILE}", f"!{PLAN_FILE}")
"""Everything but what changes nothing in an image that trains: texts, and what `relaunch apply` and plans read."""


def paths_text() -> str:
    """Return the patterns as YAML on one line."""
    return json.dumps(WATCHED_PATHS)
