"""What must hold, at every step and at the end, and what a run reached."""
