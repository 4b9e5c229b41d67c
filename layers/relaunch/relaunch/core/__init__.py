"""What Relaunch decides: pure functions of (state, event, now) over standard-library types.

A package imports only those before it: definitions, offerings, revisions, selection, machines, jobs, launches,
lifecycle. Beside them triggers imports definitions and jobs, and messages nothing.
"""
