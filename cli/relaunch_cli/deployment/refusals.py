"""Why nothing was deployed."""

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError


class RefusedError(CommandError):
    """Nothing more was deployed; the message says why, and what to do."""

    def __init__(self, message: str, exit_code: int = exit_codes.USAGE) -> None:
        super().__init__(message, exit_code=exit_code)
