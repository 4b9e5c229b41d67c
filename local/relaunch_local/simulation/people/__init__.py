"""What people ask beside everything else, before a seed begins: whatever is answered is held against what AWS, a cluster
or a receiver would say of it. Nothing of it is stored, and what it draws has a stream of its own.
"""
