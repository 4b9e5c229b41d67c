"""Transition tables, whatever they decide about.

Imports nothing.
"""
