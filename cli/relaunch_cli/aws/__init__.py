"""What the command asks of AWS itself: the deployed stack, logs, the caller's configuration. Imports bootstrap."""
