"""EC2: events of instances, instance types, zones, spot prices and placement scores. Imports ports and the core."""
