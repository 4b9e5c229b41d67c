"""Machines of our own: EC2 instances that Relaunch requests, uses and ends.

Imports definitions, offerings, revisions and selection only.
"""
