"""Attacks on the application: what a stranger, another team, or a web page may try, and what came of it."""
