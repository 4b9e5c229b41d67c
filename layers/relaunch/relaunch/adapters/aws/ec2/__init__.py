"""EC2: fleets of one machine, instances and their events, instance types, zones, spot prices and placement scores. Imports ports and the core."""
