"""Asks before something is done that cannot be undone."""

import typer

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.terminal import harmless


def confirm(question: str, *, done: str = "removed", does: str = "removes") -> None:
    """Ask a question; return if the answer is yes.

    Raises:
        CommandError: the answer is no, or there is nobody to ask; nothing was `done`.
    """
    try:
        is_confirmed = typer.confirm(harmless(question), err=True)
    except typer.Abort:
        raise CommandError(f"not confirmed: nothing was {done}", f"--yes {does} without asking") from None
    if not is_confirmed:
        raise CommandError(f"nothing was {done}", exit_code=exit_codes.CANCELLED)
