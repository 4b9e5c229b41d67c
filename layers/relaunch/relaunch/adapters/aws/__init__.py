"""Adapters for AWS services. Imports ports and the core."""
