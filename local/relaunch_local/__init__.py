"""Everything Relaunch uses on AWS, on loopback and without an account: the local world, its demo and the simulation."""
