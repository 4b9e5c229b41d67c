"""dashboard."""

import socket

import pytest
import typer

from relaunch_cli.dashboard.server import DashboardServer


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Addresses that were opened in a browser; the command serves nothing, as if Ctrl-C was pressed at once."""

    def interrupt(_server: DashboardServer) -> None:
        raise KeyboardInterrupt

    found: list[str] = []
    monkeypatch.setattr(DashboardServer, "serve_forever", interrupt)
    monkeypatch.setattr(typer, "launch", found.append)
    return found


def test_the_address_is_printed_and_opened_until_ctrl_c(relaunch, opened):
    result = relaunch("dashboard")

    assert result.exit_code == 130
    address = result.stdout.strip()
    assert address.startswith("http://127.0.0.1:")
    assert "/?token=" in address
    assert opened == [address]
    assert "Ctrl-C ends the page" in result.stderr


def test_it_is_only_printed_where_no_browser_is_to_open(relaunch, opened):
    assert relaunch("dashboard", "--no-open").stdout.count("token=") == 1
    assert opened == []


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(relaunch, opened):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = relaunch("dashboard", "--port", str(port))

    assert result.exit_code == 2
    assert f"port {port} cannot be used: Address already in use" in result.stderr
    assert "give another --port" in result.stderr
    assert opened == []
