"""Opens the dashboard: for the command, for the local world, and for the demo."""

from collections.abc import Iterator
from contextlib import contextmanager

from relaunch_cli.aws.connected import Connection
from relaunch_cli.dashboard.application import POLL_SECONDS, Dashboard
from relaunch_cli.dashboard.guard import Guard
from relaunch_cli.dashboard.server import DashboardServer


def open_dashboard(connection: Connection, stack: str, port: int = 0) -> tuple[DashboardServer, str]:
    """Listen on a port of 127.0.0.1, 0 for any; return the server and the address that lets a browser in.

    Raises:
        OSError: the port is taken.
    """
    server = DashboardServer(port)
    guard = Guard(server.port)
    server.answer = Dashboard(connection, guard, stack, POLL_SECONDS).answer
    return server, guard.url


@contextmanager
def served_dashboard(connection: Connection, stack: str) -> Iterator[str]:
    """Serve the dashboard beside what this process does; yield its address."""
    server, url = open_dashboard(connection, stack)
    server.serve_in_background()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def export_job(connection: Connection, job_id: str) -> str:
    """Return the page of a job, given its ID or the beginning of it, as one file that loads nothing.

    Raises:
        CommandError: there is no such job, or there are several.
    """
    return Dashboard(connection, Guard(0), "").export_job(job_id)[1]
