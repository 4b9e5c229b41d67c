"""Offerings: instance types, prices, quotas, interruption rates and recent capacity failures.

Imports definitions only.
"""
