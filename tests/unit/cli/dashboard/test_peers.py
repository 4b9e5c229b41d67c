"""Whose process is at the other end of a connection."""

import os
import socket
from pathlib import Path

import pytest

from relaunch_cli.dashboard.peers import TABLES, is_own_user

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
PEER = ("127.0.0.1", 0x9C40)
OWN = ("127.0.0.1", 8000)
MAPPED = "0000000000000000FFFF0000"
OTHERS = os.geteuid() + 1


def row(local: str, remote: str, uid: int) -> str:
    return f"   1: {local} {remote} 01 00000000:00000000 00:00000000 00000000  {uid}        0 4711 1 0 20 4 30 10 -1\n"


# Of a machine whose lowest byte is first, as those of CI are.
PEERS = "0100007F:9C40"
OWNS = "0100007F:1F40"


@pytest.mark.parametrize(
    ("tcp", "tcp6", "is_own"),
    [
        (row(OWNS, PEERS, OTHERS) + row(PEERS, OWNS, os.geteuid()), "", True),
        (row(OWNS, PEERS, os.geteuid()) + row(PEERS, OWNS, OTHERS), "", False),
        ("", row(MAPPED + PEERS, MAPPED + OWNS, OTHERS), False),
        ("", row(MAPPED + PEERS, MAPPED + OWNS, os.geteuid()), True),
        (row(PEERS, OWNS, 0), "", True),
        (row("0100007F:9C41", OWNS, OTHERS) + row(PEERS, "0100007F:1F41", OTHERS), "", True),
        ("", "", True),
    ],
)
def test_the_table_says_whose_process_it_is(tmp_path: Path, tcp: str, tcp6: str, is_own: bool) -> None:
    tables = (tmp_path / "tcp", tmp_path / "tcp6")
    for table, rows in zip(tables, (tcp, tcp6), strict=True):
        table.write_text(HEAD + rows)

    assert is_own_user(PEER, OWN, tables) is is_own


def test_where_there_is_no_table_the_token_alone_decides(tmp_path: Path) -> None:
    assert is_own_user(PEER, OWN, (tmp_path / "none",))


@pytest.mark.skipif(not all(each.exists() for each in TABLES), reason="this system says nothing of it")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_real_connection_is_in_the_table(monkeypatch: pytest.MonkeyPatch, family: socket.AddressFamily) -> None:
    address = "127.0.0.1" if family is socket.AF_INET else "::ffff:127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(family) as client:
        client.connect((address, server.getsockname()[1]))
        accepted, peer = server.accept()
        with accepted:
            assert is_own_user(peer, server.getsockname())
            monkeypatch.setattr(os, "geteuid", lambda: 12_345)
            # Of root all is.
            assert is_own_user(peer, server.getsockname()) is (os.getuid() == 0)
