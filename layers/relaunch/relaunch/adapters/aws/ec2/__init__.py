"""EC2: launches of machines, instances, their events and types, zones, spot prices and placement scores.

Imports ports and the core.
"""
