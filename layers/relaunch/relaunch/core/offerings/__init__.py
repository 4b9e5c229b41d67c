"""What can be had: instance types, prices, quotas, rates of interruption, and what failed lately.

Imports definitions only.
"""
