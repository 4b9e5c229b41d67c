"""Reduces a webhook payload that is too large for the queue to the fields that payloads.py reads.

Imports are kept to a minimum for the cold start of github_webhook.
"""

import json
import re
from collections.abc import Mapping

MAX_LISTED_COMMITS = 2048  # the most that GitHub lists of one push; there may be more
# "A maximum of 3000 changed files will be reported per commit": GitHub's OpenAPI description of the push webhook.
MAX_LISTED_PATHS = 3000
MAX_PATHS_BYTES = 800_000  # of all changed paths as JSON
# "Skipping workflow runs", GitHub Docs; of several commits the newest counts (github/docs issue 6162).
_SKIPS = r"\[skip ci\]|\[ci skip\]|\[no ci\]|\[skip actions\]|\[actions skip\]|\n\nskip-checks: ?true\s*\Z"
_REPOSITORY: Mapping[str, object] = {"full_name": True}
_PACKAGE: Mapping[str, object] = {
    "id": True,
    "name": True,
    "package_version": {
        "id": True,
        "version": True,
        "target_oid": True,
        "package_url": True,
        "container_metadata": {"tag": {"name": True, "digest": True}},
    },
}
_USED_FIELDS: Mapping[str, object] = {
    **dict.fromkeys(("action", "ref", "before", "after", "deleted", "created", "forced", "branch", "inputs"), True),
    "client_payload": True,
    "workflow": {"name": True, "path": True},  # in workflow_dispatch it is a text
    "repository": {**_REPOSITORY, "pushed_at": True},
    "sender": {"login": True},
    "head_commit": {"id": True, "message": True},
    "workflow_run": {
        **dict.fromkeys(("id", "run_attempt", "name", "path", "event", "head_branch", "head_sha"), True),
        "conclusion": True,
        "head_repository": _REPOSITORY,
    },
    "release": dict.fromkeys(("id", "tag_name", "target_commitish", "published_at"), True),
    "package": _PACKAGE,
    "registry_package": _PACKAGE,
}


def trim_payload(payload: Mapping[str, object]) -> dict[str, object]:
    """Return the used fields of a payload; of a push all changed paths or, if they are too many or not all, none."""
    trimmed = _keep_fields(payload, _USED_FIELDS)
    commits = payload.get("commits")
    if isinstance(commits, list):
        trimmed["commits"] = _trim_commits(commits)
    head = trimmed.get("head_commit")
    if isinstance(head, dict) and isinstance(message := head.get("message"), str):
        head["message"] = find_skip(message)
    return trimmed


def find_skip(message: str) -> str:
    """Return the words of a commit message for which GitHub starts no workflow when it is pushed; empty without any."""
    found = re.search(_SKIPS, message)
    return found.group() if found else ""


def _keep_fields(value: Mapping[str, object], fields: Mapping[str, object]) -> dict[str, object]:
    kept: dict[str, object] = {}
    for name, nested in fields.items():
        if name in value:
            part = value[name]
            if isinstance(nested, Mapping) and isinstance(part, Mapping):
                part = _keep_fields(part, nested)
            kept[name] = part
    return kept


def _trim_commits(commits: list[object]) -> list[object]:
    """Return commits with the paths of all, or one without lists if the paths are unknown or too many.

    None of them has as many paths as GitHub lists at most, for which they would pass for incomplete.
    """
    if not commits:
        return []
    paths: set[str] = set()
    for commit in commits:
        lists = [commit.get(name) if isinstance(commit, Mapping) else None for name in ("added", "modified", "removed")]
        listed = [path for paths_of in lists if isinstance(paths_of, list) for path in paths_of]
        if not all(isinstance(paths_of, list) for paths_of in lists) or len(listed) >= MAX_LISTED_PATHS:
            return [{}]
        paths.update(map(str, listed))
    if len(commits) >= MAX_LISTED_COMMITS or sum(len(json.dumps(path)) + 1 for path in paths) > MAX_PATHS_BYTES:
        return [{}]
    ordered = sorted(paths)
    most = MAX_LISTED_PATHS - 1
    return [
        {"added": ordered[start : start + most], "modified": [], "removed": []}
        for start in range(0, max(len(ordered), 1), most)
    ]
