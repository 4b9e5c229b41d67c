"""Receivers of notices, and the statuses of commits at GitHub: what they got, how they fail, and what may not be."""
