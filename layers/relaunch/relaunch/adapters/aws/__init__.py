"""Adapters over AWS services."""
