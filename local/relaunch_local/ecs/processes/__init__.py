"""Containers as processes: scripted on the simulator's clock, or real ones of this machine."""
