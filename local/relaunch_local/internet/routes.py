"""Leads connections of a function to the servers of the local world: its `sitecustomize`, which Python imports itself.

The variable RELAUNCH_LOCAL_ROUTES has, in JSON, an address and a port of loopback for each name. A name resolves to its
address, which is public: what refuses addresses of private networks lets it pass. Whoever connects to the address
reaches the port. Nothing else of the network is another one, and TLS is left to whoever speaks it.

Source: https://docs.python.org/3/library/site.html#module-sitecustomize.
"""

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

ROUTES_VARIABLE = "RELAUNCH_LOCAL_ROUTES"
FUNCTION_PATH_VARIABLE = "RELAUNCH_LOCAL_FUNCTION_PATH"
"""Tells the emulator which folder its functions import their `sitecustomize` from."""


def lead(routes: Mapping[str, tuple[str, int]]) -> None:
    """Resolve these names to their addresses, and connect to the ports of these."""
    addresses = {name: address for name, (address, _port) in routes.items()}
    ports = dict(routes.values())
    find = socket.getaddrinfo
    connect_to = socket.socket.connect

    def getaddrinfo(host: Any, *arguments: Any, **keywords: Any) -> Any:
        return find(addresses.get(host, host), *arguments, **keywords)

    def connect(self: Any, address: Any) -> None:
        port = ports.get(address[0]) if isinstance(address, tuple) else None
        connect_to(self, address if port is None else ("127.0.0.1", port))

    socket.getaddrinfo = getaddrinfo
    socket.socket.connect = connect  # type: ignore[method-assign]


if __name__ == "sitecustomize":
    lead(json.loads(os.environ[ROUTES_VARIABLE]))
