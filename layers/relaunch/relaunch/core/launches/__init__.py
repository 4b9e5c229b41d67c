"""What a target is asked and may answer: launch requests, their outcomes, derived revisions.

Imports jobs and what comes before them.
"""
