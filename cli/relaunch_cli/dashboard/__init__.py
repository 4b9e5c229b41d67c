"""`relaunch dashboard`: pages about the jobs of a stack, served on loopback or written into one file."""
