"""Output of `relaunch init`: what will be written, registered and switched on, and what to do next."""

import os
import shlex
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch_cli.repository_setup.findings import FileChange, Setup, Webhook
from relaunch_cli.views.table import key_values

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def render_setup(setup: Setup, *, is_whole: bool = False, is_local: bool = False) -> RenderableType:
    """Return what will be made; of files that exist the difference, and if it `is_whole` every line of new ones.

    `is_local`: it is for a local world, where the command pushes images.
    """
    parts: list[RenderableType] = [Text(_title(setup), "bold"), Text("")]
    table = key_values()
    for file in setup.files:
        table.add_row(Text(file.path), Text(_describe_file(file)))
    table.add_row(Text("task definition"), Text(_describe_revision(setup)))
    for bucket in setup.buckets:
        others = f", and keep {_count(bucket.others, 'other notification')}" if bucket.others else ""
        text = "its uploads go to EventBridge" if bucket.is_on else f"send its uploads to EventBridge{others}"
        table.add_row(Text(f"bucket {bucket.bucket}"), Text(text))
    if setup.webhook is not None:
        table.add_row(Text("webhook"), Text(_describe_webhook(setup.webhook)))
    parts.append(table)
    about = _about_workflow(setup, is_local=is_local)
    if about:
        parts += [Text(""), about]
    if setup.missing_lines:
        text = "note: the container mounts the data bucket, and its Dockerfile does not install mount-s3. Add:"
        parts += [Text(""), Text(text, "yellow"), Text("\n".join(setup.missing_lines), no_wrap=True, overflow="ignore")]
    for file in setup.changed_files:
        if is_whole or file.before is not None:
            parts += [Text(""), _difference(file)]
    return Group(*parts, Text(""))


def _about_workflow(setup: Setup, *, is_local: bool) -> Text | None:
    """Return why no workflow runs for what is checked out; of a local world, where none would run, what is instead."""
    if setup.without_workflow and is_local:
        return Text("no workflow is written: here `relaunch local push` pushes the image of your commit")
    if setup.without_workflow:
        return Text(f"note: no workflow pushes images: {setup.without_workflow}", "yellow")
    return Text(f"note: {setup.other_branch}", "yellow") if setup.other_branch else None


def describe_next(setup: Setup, stack: str, *, is_local: bool = False) -> str:
    """Return the commands that start the first job, each whole, to be copied; no workflow pushes to a local world."""
    option = "" if stack == "relaunch" else f" --stack {stack}"
    lines = []
    if setup.changed_files:
        root = setup.repository.root
        paths = " ".join(shlex.quote(os.path.relpath(root / each.path)) for each in setup.changed_files)
        lines += [f"git add {paths}", 'git commit --message "Train with Relaunch"']
    push = f"relaunch local push{option}" if is_local else "git push"
    lines += [push, f"relaunch ps{option}                # then explain JOB, logs JOB -f"]
    return "\n".join(["", "Next:", *(f"  {line}" for line in lines)])


def setup_json(setup: Setup, *, is_made: bool) -> Mapping[str, Any]:
    """Return a setup as JSON."""
    return {
        "repository": setup.repository.github or None,
        "made": is_made,
        "files": [
            {"path": each.path, "change": _change(each), "difference": each.difference or None} for each in setup.files
        ],
        "task_definition": {
            "family": setup.definition["family"],
            "registered_revision": setup.revision,
            "needs_revision": setup.needs_revision,
        },
        "buckets": [{"name": each.bucket, "is_on": each.is_on} for each in setup.buckets],
        "webhook": _webhook_json(setup.webhook),
        "without_workflow": setup.without_workflow or None,
        "other_branch": setup.other_branch or None,
        "lacks_mountpoint": bool(setup.missing_lines),
    }


def _webhook_json(webhook: Webhook | None) -> Mapping[str, Any] | None:
    if webhook is None:
        return None
    missing = {"missing_events": list(webhook.missing), "obstacle": webhook.obstacle or None}
    return {"url": webhook.url or None, "is_there": webhook.id is not None, **missing}


def _title(setup: Setup) -> str:
    where = setup.repository.github or setup.repository.root.name
    return f"{where} has what a training needs" if setup.is_complete else f"What {where} needs for training"


def _change(file: FileChange) -> str:
    if not file.is_needed:
        return "none"
    return "create" if file.before is None else "change"


def _describe_file(file: FileChange) -> str:
    lines = file.after.count("\n")
    texts = {"none": "is left as it is", "create": f"write {_count(lines, 'line')}", "change": "change, see below"}
    return texts[_change(file)]


def _describe_revision(setup: Setup) -> str:
    family = setup.definition["family"]
    if setup.revision is None:
        return f"register {family}, its first revision"
    shown = f"{family}:{setup.revision}"
    return f"register another revision: {shown} differs" if setup.needs_revision else f"{shown} is registered"


def _describe_webhook(webhook: Webhook) -> str:
    if webhook.obstacle:
        return f"not made: {webhook.obstacle}"
    events = ", ".join(webhook.missing)
    if webhook.id is None:
        return f"make it with a secret of its own: {events} to {webhook.url}"
    return f"add its missing events: {events}" if events else "is there"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _difference(file: FileChange) -> Text:
    # Lines are whole: somebody reads them as YAML.
    text = Text(no_wrap=True, overflow="ignore")
    for line in file.difference.splitlines():
        text.append(f"{line}\n", _COLOURS.get(line[:1], ""))
    return text
