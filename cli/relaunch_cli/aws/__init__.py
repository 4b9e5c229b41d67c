"""What the command reads from AWS by itself: configuration, stack outputs, logs. Nothing in here prints."""
