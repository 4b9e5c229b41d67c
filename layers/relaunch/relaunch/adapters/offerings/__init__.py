"""Offerings from bundled data, the refreshed snapshot and current prices. Imports ports and the core."""
