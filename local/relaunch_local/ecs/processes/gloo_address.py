"""Stands for the network of a machine: `gloo_address.py PROGRAM …` lets gloo listen on MACHINE_ADDRESS alone.

gloo takes the address that the host name resolves to, or that of an interface: it chooses none of those of loopback but
127.0.0.1, and machines that share this one would all have it.
"""

import os
import runpy
import sys
from typing import Any

from torch.distributed import distributed_c10d  # type: ignore[import-not-found] # not beside mypy


class BoundGloo(distributed_c10d.ProcessGroupGloo):  # type: ignore[misc] # as above
    """PyTorch's, with one device: the address of the machine."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        """Listen."""
        options = self._Options()
        options._devices = [self.create_device(hostname=os.environ["MACHINE_ADDRESS"])]  # noqa: SLF001 - as tests of
        options._timeout = timeout  # noqa: SLF001 - PyTorch do it
        super().__init__(store, rank, size, options)


if __name__ == "__main__":
    distributed_c10d.ProcessGroupGloo = BoundGloo
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
