"""Definition files: parsing, validation and error messages.

Imports the core only.
"""
