"""`relaunch events`."""

from typing import Annotated

import typer

from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.jobs import render_events
from relaunch_cli.views.json_output.jobs import event_json
from relaunch_cli.views.screen import print_json, print_note, print_result, progress


def events(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of events, newest first.")] = 20,
    *,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List recent events and their outcomes.

    Events are kept for eight days, with the jobs they started or the reason why they started none. Uploads that no
    trigger watches do not reach Relaunch and are not listed.
    """
    deps = connect(context, stack).deps
    with progress("reading events"):
        found = deps.events.list_events(deps.clock.now(), limit)
    if as_json:
        print_json({"events": [event_json(event) for event in found]})
    elif found:
        print_result(render_events(found, deps.clock.now()))
    else:
        print_note(
            "no events: is the webhook set up, were at most three tags pushed at once (GitHub sends nothing for more), "
            "does the bucket send its events to EventBridge, and does a trigger watch the upload "
            "(`relaunch definitions`)?"
        )
