"""Jobs: state, attempts and placements, lookup keys and quota usage.

Imports definitions, offerings, revisions, selection and machines only.
"""
