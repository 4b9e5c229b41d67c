"""What people ask beside everything else, before a seed begins.

Whatever is answered is held against what AWS, a cluster or a receiver would answer. Nothing of it is stored, and what
it draws has streams of its own.
"""
