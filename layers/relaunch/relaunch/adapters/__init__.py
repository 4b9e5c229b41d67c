"""How Relaunch talks to the outside: one port over one service per file. Imports ports and the core, no use case."""
