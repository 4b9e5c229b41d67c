"""Entry point of the `relaunch` command."""

import gc

# Importing the command makes a few hundred thousand objects and next to no cycles: with Python's own threshold of 700
# the collector looks at them again and again, a sixth of the time of `relaunch explain`.
_COLLECTED_AFTER = 300_000


def main() -> None:
    """Run the command."""
    gc.set_threshold(_COLLECTED_AFTER)
    from relaunch_cli.app import run  # noqa: PLC0415 - see above

    run()
