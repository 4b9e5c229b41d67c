"""Definition files: YAML read, validated, and every problem said in the words of its author.

Imports the core only.
"""
