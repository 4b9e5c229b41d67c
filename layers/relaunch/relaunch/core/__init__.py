"""What Relaunch decides: pure functions of (state, event, now) over standard-library types."""
