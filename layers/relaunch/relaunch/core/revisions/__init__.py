"""Revisions of task definitions, and the images of their containers.

Imports definitions and offerings only.
"""
