"""Rules of the targets with pods: how GPUs are asked for in a cluster, and what ACK and ACS add to that."""
