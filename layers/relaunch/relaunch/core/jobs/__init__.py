"""Jobs: state, attempts and placements, lookup keys and quota usage.

Imports definitions, offerings, revisions and selection only.
"""
