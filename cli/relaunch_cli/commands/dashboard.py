"""`relaunch dashboard`."""

from typing import Annotated

import typer

from relaunch_cli.dashboard.opening import open_dashboard
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Stack
from relaunch_cli.views.screen import print_note, print_text, progress


def dashboard(
    context: typer.Context,
    *,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port on 127.0.0.1; 0: any free one.")
    ] = 0,
    has_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, or only print its address.")
    ] = True,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Show jobs, costs, machines and the market on a page in the browser, until Ctrl-C.

    The page is served on this machine alone, with your own AWS credentials; the address that is printed has a token
    that lets a browser in. Nothing is deployed, and nothing is changed before a form asks.
    """
    connection = connect(context, stack)
    with progress("connecting"):
        # What is wrong with the stack or the credentials is said here, and not on the page.
        connection.deps  # noqa: B018 - a property that connects
    try:
        server, url = open_dashboard(connection, stack, port)
    except OSError as error:
        raise CommandError(f"port {port} cannot be used: {error.strerror}", "give another --port, or none") from error
    print_text(url)
    print_note("the address lets in whoever has it, as you; Ctrl-C ends the page")
    if has_browser:
        typer.launch(url)
    try:
        server.serve_forever()
    finally:
        server.server_close()
