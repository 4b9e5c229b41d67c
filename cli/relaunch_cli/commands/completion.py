"""`relaunch completion`."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from relaunch_cli.lazy_commands import COMPLETE_VARIABLE
from relaunch_cli.views.screen import print_text


class Shell(StrEnum):
    """A shell that words can be completed in."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that the script is for.")]) -> None:
    """Print a script with which a shell completes commands, options, job IDs and names of definitions.

    \b
    bash, in ~/.bashrc:  eval "$(relaunch completion bash)"
    zsh, in ~/.zshrc, after compinit:  eval "$(relaunch completion zsh)"
    fish:  relaunch completion fish > ~/.config/fish/completions/relaunch.fish
    """  # noqa: D301 - click's mark for lines to be left as they are
    # Typer has no public name for it that does not look for the shell itself.
    print_text(get_completion_script(prog_name="relaunch", complete_var=COMPLETE_VARIABLE, shell=shell.value))
