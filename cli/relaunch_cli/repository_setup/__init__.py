"""What `relaunch init` writes into the repository of a training, and what it makes in the account for it."""
