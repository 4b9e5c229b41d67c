"""The bodies of GitHub's deliveries for the events of a scenario, and of deliveries that must start nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relaunch.adapters.github.deliveries import OWN_DISPATCH_KEY
from relaunch_local.simulation.scenario import PlannedEvent
from relaunch_local.simulation.trigger_scenario import DISPATCH_TYPE, PACKAGE, WORKFLOW, WORKFLOW_FILE

_NO_COMMIT = "0" * 40
_PUSHED_AT = 1_793_700_000


def event_name(kind: str) -> str:
    """Return GitHub's name for the event of a kind."""
    return "push" if kind == "tag" else kind


def payload_of(event: PlannedEvent, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of an event; whenever it happens again, it differs as GitHub's does."""
    repository = {"id": 1, "full_name": f"acme/{event.definition}", "pushed_at": _PUSHED_AT + event.occurrence}
    same = {"repository": repository, "sender": {"login": "ada", "id": 2}}
    match event.kind:
        case "release":
            published_at = f"2026-01-01T00:{event.occurrence:02d}:00Z"
            release = {
                "id": int(event.token),
                "tag_name": "v1.0",
                "target_commitish": "main",
                "published_at": published_at,
            }
            return {"action": "published", "release": release, **same}
        case "workflow_run":
            run = {
                "id": int(event.token),
                "run_attempt": event.occurrence,
                # With `run-name` in its file the title of the run (actions/runner issue 4141).
                "name": f"Image of {event.token}",
                "path": f".github/workflows/{WORKFLOW_FILE}",
                "event": "push",
                "head_branch": "main",
                "head_sha": f"{int(event.token):040x}",
                "conclusion": "success",
                "head_repository": repository,
            }
            workflow = {"id": 4, "name": WORKFLOW, "path": run["path"]}
            return {"action": "completed", "workflow_run": run, "workflow": workflow, **same}
        case "workflow_dispatch":
            # What tells a body from others is in members that Relaunch does not read.
            return {"workflow": f".github/workflows/{WORKFLOW_FILE}", "ref": "refs/heads/main", "inputs": dict(inputs),
                    "installation": {"id": int(event.token)}, **same}  # fmt: skip
        case "repository_dispatch":
            return {"action": DISPATCH_TYPE, "branch": "main", "client_payload": {"inputs": dict(inputs)},
                    "installation": {"id": int(event.token)}, **same}  # fmt: skip
        case "package":
            tag = {"name": f"v{event.token}", "digest": f"sha256:{event.token}"}
            version = {"id": int(event.token), "version": tag["digest"], "container_metadata": {"tag": tag}}
            return {"action": "published", "package": {"id": 3, "name": PACKAGE, "package_version": version}, **same}
        case _:
            return {**_push(event), **same}


def _push(event: PlannedEvent) -> dict[str, Any]:
    commit = {"id": event.token, "added": ["train/a.py"], "modified": [], "removed": []}
    return {
        "ref": f"refs/tags/v{event.token[:4]}" if event.kind == "tag" else "refs/heads/main",
        "before": _NO_COMMIT[:-1] + "1",
        "after": event.token,
        "created": False,
        "deleted": False,
        "forced": False,
        "head_commit": commit,
        "commits": [commit],
    }


def useless_payload(event: PlannedEvent) -> dict[str, Any]:
    """Return the body of an event of the same kind, beside this one, that must start nothing."""
    beside = replace(event, token=event.token[::-1])
    payload = payload_of(beside, {})
    match event.kind:
        case "release":
            return payload | {"action": "created"}
        case "workflow_run":
            return payload | {"workflow_run": payload["workflow_run"] | {"conclusion": "failure"}}
        case "workflow_dispatch":
            return payload | {"inputs": {OWN_DISPATCH_KEY: "a-job"}}
        case "repository_dispatch":
            return payload | {"action": "something else"}
        case "package":
            # A push brings an event for each of its manifests, of which only the index has the tag (github/docs#22091).
            version = payload["package"]["package_version"]
            untagged = version | {"container_metadata": {"tag": {"name": "", "digest": version["version"]}}}
            return payload | {"package": payload["package"] | {"package_version": untagged}}
        case _:
            return payload | {"deleted": True, "after": _NO_COMMIT, "head_commit": None, "commits": []}
