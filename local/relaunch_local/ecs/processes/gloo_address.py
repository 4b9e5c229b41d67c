"""Runs a training whose gloo listens on MACHINE_ADDRESS: one machine stands for several, each with an address.

gloo takes the address that the host name resolves to, or that of an interface: it chooses none of those of loopback.
"""

import os
import runpy
import sys

from torch.distributed import distributed_c10d


class BoundGloo(distributed_c10d.ProcessGroupGloo):
    def __init__(self, store, rank, size, timeout):
        options = self._Options()
        options._devices = [self.create_device(hostname=os.environ["MACHINE_ADDRESS"])]
        options._timeout = timeout
        super().__init__(store, rank, size, options)


distributed_c10d.ProcessGroupGloo = BoundGloo
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
