"""Dead-letter messages. Imports no other package of the core."""
