"""EC2: fleets of one machine, instances, their events and types, zones, spot prices and placement scores.

Imports ports and the core.
"""
