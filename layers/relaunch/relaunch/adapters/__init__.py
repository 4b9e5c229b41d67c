"""How Relaunch talks to the world: one port over one service per file."""
