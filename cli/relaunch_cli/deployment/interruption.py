"""Ctrl-C while stacks are made or removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


@contextmanager
def says_how_to_go_on(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell somebody who ends a deployment or a removal by Ctrl-C, also at a question, what becomes of it."""
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        tell("interrupted: AWS finishes what it has begun; after that the same command goes on from there")
        raise
