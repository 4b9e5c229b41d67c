"""A worker that needs no library: says where it is, and does what the argument of its rank names."""

import os
import signal
import sys

behaviour = sys.argv[1 + int(os.environ["RANK"])]
names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
signals = {signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("started", *(f"{name}={os.environ[name]}" for name in names), flush=True)
if behaviour == "saves":
    signal.sigwait(signals)
    print("saved", flush=True)
if behaviour == "ignores":
    while signal.sigwait(signals):
        print("ignored", flush=True)
print("ends", flush=True)
sys.exit(7 if behaviour == "fails" else 0)
