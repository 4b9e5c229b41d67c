"""The pages that are about no single job: the machines of the stack, what its jobs cost, and the market."""

from collections.abc import Mapping

from relaunch_cli.aws.connected import Connection
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.dashboard.machine_reader import read_machines
from relaunch_cli.dashboard.pages.machines import machines_values

Page = tuple[str, Mapping[str, object]]
"""The template of a page, and its values."""


class StackPages:
    """Reads what a page shows."""

    def __init__(self, connection: Connection, kept: Kept) -> None:
        self._connection = connection
        self._kept = kept

    def page(self, request: Request) -> Page | None:
        """Return the page of an address; None if it is another one's.

        Raises:
            CommandError: what is asked for is not there, or no such thing.
        """
        match request.path:
            case ("machines",):
                return self._machines()
            case _:
                return None

    def _machines(self) -> Page:
        deps = self._connection.deps
        found = read_machines(deps.machines, self._kept)
        values = machines_values(found, deps.limits.machines, self._connection.now(), is_on=deps.machine_settings.is_on)
        return "machines.html", {"page": "machines", **values}
