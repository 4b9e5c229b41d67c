"""What happens next: the events of a job, its transition table, and the actions that the table names.

Imports every package of the core but triggers and messages.
"""
