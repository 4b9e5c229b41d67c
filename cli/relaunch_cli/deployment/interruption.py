"""Ctrl-C while stacks are made or removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from relaunch_cli.terminal import echo


def is_wanted(question: str) -> bool:
    """Ask at the terminal; Ctrl-C, and the end of input, are a no."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        echo("", err=True)  # what follows stands below the question
        return False


@contextmanager
def says_how_to_go_on(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell somebody who ends a deployment or a removal by Ctrl-C, also at a question, what becomes of it."""
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        tell("interrupted: AWS finishes what it has begun; after that the same command goes on from there")
        raise
