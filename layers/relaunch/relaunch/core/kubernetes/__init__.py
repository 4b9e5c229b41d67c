"""Rules of the Kubernetes targets ACK and ACS: how GPUs are asked for there, and what cannot be asked for."""
