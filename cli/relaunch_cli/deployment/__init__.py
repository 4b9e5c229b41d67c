"""What `relaunch deploy` and `relaunch uninstall` do: which stacks, in which order, and what no stack can make."""
