"""Container processes: scripted on a clock, or real processes of this machine. Imports the clock only."""
