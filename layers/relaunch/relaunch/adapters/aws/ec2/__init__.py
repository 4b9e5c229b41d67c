"""EC2: fleets, instances and their events, instance types, zones, spot prices, scores. Imports ports and the core."""
