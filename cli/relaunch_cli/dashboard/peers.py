"""Whose process is at the other end of a connection on loopback, where the system says so.

The token could be seen by another user of the machine: browsers send the cookie of 127.0.0.1 to every port of it, also
to a server of somebody else, and the address is an argument of the program that opens it.
"""

import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

# proc_net_tcp(5); a socket for IPv6 may be connected to an IPv4 address too.
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL = 1
_REMOTE = 2
_UID = 7
_MAPPED = "0000000000000000FFFF0000"
_ROOT = 0


def is_own_user(peer: tuple[str, int], own: tuple[str, int], tables: Sequence[Path] = TABLES) -> bool:
    """Return whether the process at the other end is of the user who runs this one, or of root, who may do everything.

    So it is where the system does not say whose it is, as macOS, or has forgotten it, as of a process that has closed
    its end, and reads no answer.
    """
    wanted = _written(peer), _written(own)
    for table in tables:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            return True
        for fields in map(str.split, lines):
            if (fields[_LOCAL].removeprefix(_MAPPED), fields[_REMOTE].removeprefix(_MAPPED)) == wanted:
                return int(fields[_UID]) in {_ROOT, os.geteuid()}
    return True


def _written(address: tuple[str, int]) -> str:
    """Return an address as the tables have it: the number is in the order of the machine's bytes."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"
