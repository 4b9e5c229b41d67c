"""What is stored of a job: its state, attempts and placement tries, under what it is found, and what it uses.

Imports definitions, offerings, revisions and selection only.
"""
