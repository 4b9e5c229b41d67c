"""The events of a job, the transition table, and its actions.

Imports every package of the core except triggers and messages.
"""
