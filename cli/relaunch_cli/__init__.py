"""The `relaunch` command."""
