"""The one-machine world: everything Relaunch meets on AWS, on loopback, without an account."""
