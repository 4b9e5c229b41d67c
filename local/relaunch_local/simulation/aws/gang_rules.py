"""What must hold of the ranks of a gang, and how long they wait for each other."""

MET = "two generations of a gang never meet"
KNOWN = "a rank knows its gang"
USED = "a rank has a process for each of its GPUs"
REACHED = "a rank is on the network of its machine, and rank 0 where the others look for it"
ONCE = "a rank of a gang runs once"
ALIKE = "the ranks of a gang resume from one checkpoint and save to one place"


JOIN_SECONDS = 600.0
"""How long a rank waits for the others before it fails."""
BARRIER_SECONDS = 300.0
"""How long ranks wait for others when one has left early."""
TCP_SECONDS = (0.5, 5.0)
"""How long workers over TCP take to miss a peer."""
NCCL_SECONDS = (600.0, 600.0)
"""How long NCCL waits for a peer that is gone: its watchdog."""
AGAIN_SECONDS = 5.0
"""How often ranks look again for the first one, where its name is not known yet."""
