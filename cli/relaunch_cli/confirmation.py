"""Asks before something is done that cannot be undone."""

import typer

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.terminal import harmless
from relaunch_cli.views.screen import can_ask


def confirm(question: str, *, done: str = "removed", does: str = "removes") -> None:
    """Ask a question; return if the answer is yes.

    Raises:
        CommandError: the answer is no, or there is nobody to ask; nothing was `done`.
    """
    try:
        is_confirmed = typer.confirm(harmless(question), err=True)
    except typer.Abort:
        if can_ask():
            # Ctrl-C, or the end of input, by somebody who was asked.
            raise CommandError(f"not confirmed: nothing was {done}", exit_code=exit_codes.CANCELLED) from None
        raise CommandError(f"not confirmed: nothing was {done}", f"--yes {does} without asking") from None
    if not is_confirmed:
        raise CommandError(f"nothing was {done}", exit_code=exit_codes.CANCELLED)
