"""`relaunch definitions`."""

import typer

from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack


def definitions(context: typer.Context, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the registered job definitions."""
    from relaunch_cli.views.definitions import render_definitions
    from relaunch_cli.views.json_output.definitions import definition_json
    from relaunch_cli.views.screen import print_json, print_note, print_result, progress

    deps = connect(context, stack).deps
    with progress("reading the registered definitions"):
        registered = deps.definitions.list_registered()
    if as_json:
        print_json({"definitions": [definition_json(each) for each in registered]})
    elif registered:
        print_result(render_definitions(registered))
    else:
        print_note("no job definitions; `relaunch apply FILE` registers them")
