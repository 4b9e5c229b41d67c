"""Launch requests, their outcomes, and derived revisions.

Imports jobs and what comes before them.
"""
