"""What becomes of messages that nobody can handle. Imports nothing else of the core."""
