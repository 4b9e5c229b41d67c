"""A worker that needs no library: says where it is, and does what the argument of its rank names."""

import os
import signal
import sys

behaviour = sys.argv[1 + int(os.environ["RANK"])]
names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
signals = {signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
# In one piece, for several workers of a machine have the same output.
os.write(1, " ".join(["started", *(f"{name}={os.environ[name]}" for name in names)]).encode() + b"\n")
if behaviour == "saves":
    signal.sigwait(signals)
    os.write(1, b"saved\n")
if behaviour == "ignores":
    while signal.sigwait(signals):
        os.write(1, b"ignored\n")
os.write(1, b"ends\n")
sys.exit(7 if behaviour == "fails" else 0)
