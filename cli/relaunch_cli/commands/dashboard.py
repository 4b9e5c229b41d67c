"""`relaunch dashboard`."""

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from relaunch_cli.completions import complete_job
from relaunch_cli.dashboard.opening import export_job, open_dashboard
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, load_job
from relaunch_cli.options import DEFAULT_STACK, Stack
from relaunch_cli.views.screen import print_note, print_text, progress


def dashboard(
    context: typer.Context,
    job: Annotated[
        str, typer.Argument(metavar="[JOB]", help="Begin with the page of this job.", autocompletion=complete_job)
    ] = "",
    *,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", dir_okay=False, help="Write the page of JOB into one file, and serve none."),
    ] = None,
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

    With --export the page of JOB becomes one file, for a pull request or a paper: it loads nothing and names no
    address.
    """
    connection = connect(context, stack)
    if export is not None:
        if not job:
            raise CommandError("--export takes a JOB", "name one: relaunch dashboard JOB --export job.html")
        with progress("reading the job"):
            page = export_job(connection, job)
        _write(export, page)
        return
    with progress("connecting"):
        # What is wrong with the stack, the credentials or the job is said here, and not on the page.
        deps = connection.deps
        job = load_job(deps, job).job_id if job else ""
    try:
        server, url = open_dashboard(connection, stack, port)
    except OSError as error:
        raise CommandError(f"port {port} cannot be used: {error.strerror}", "give another --port, or none") from error
    if job:
        url += f"&job={quote(job, safe='')}"
    print_text(url)
    print_note("the address lets in whoever has it, as you; Ctrl-C ends the page")
    if has_browser:
        typer.launch(url)
    try:
        server.serve_forever()
    finally:
        server.server_close()


def _write(file: Path, page: str) -> None:
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from error
    print_note(f"written: {file}, {len(page.encode()) / 1024:,.0f} KiB")
