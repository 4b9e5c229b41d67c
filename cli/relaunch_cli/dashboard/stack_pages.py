"""The pages that are about no single job: the machines of the stack, what its jobs cost, and the market."""

from collections.abc import Mapping

from relaunch_cli.aws.connected import Connection
from relaunch_cli.dashboard.cost_reader import read_costs
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.dashboard.machine_reader import read_machines
from relaunch_cli.dashboard.market_reader import read_market, read_prices
from relaunch_cli.dashboard.pages.costs import costs_values, read_query
from relaunch_cli.dashboard.pages.machines import machines_values
from relaunch_cli.dashboard.pages.market import market_values
from relaunch_cli.dashboard.pages.prices import prices_values

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
            case ("costs",):
                return self._costs(request)
            case ("market",):
                return self._market(request)
            case "market", name:
                return self._prices(name)
            case _:
                return None

    def _machines(self) -> Page:
        deps = self._connection.deps
        found = read_machines(deps.machines, self._kept)
        values = machines_values(found, deps.limits.machines, self._connection.now(), is_on=deps.machine_settings.is_on)
        return "machines.html", {"page": "machines", **values}

    def _costs(self, request: Request) -> Page:
        now = self._connection.now()
        query = read_query(request, now)
        found = read_costs(query.first, query.last, self._connection.deps, self._kept)
        return "costs.html", {"page": "costs", **costs_values(request, query, found, now)}

    def _market(self, request: Request) -> Page:
        found = read_market(self._connection.deps, self._kept)
        return "market.html", {"page": "market", **market_values(request, found, self._connection.now())}

    def _prices(self, name: str) -> Page:
        history = read_prices(name, self._connection.deps, self._kept)
        return "prices.html", {"page": "market", **prices_values(history)}
