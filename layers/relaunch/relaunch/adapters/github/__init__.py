"""Adapters over GitHub."""
