"""Running the command in this process, on a stage."""

from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from fakes.cli_session import Stage
from relaunch_cli.app import app


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def relaunch(stage: Stage) -> Callable[..., Result]:
    def run(*arguments: str, columns: int = 80) -> Result:
        result = CliRunner().invoke(app, list(arguments), obj=stage, env={"COLUMNS": str(columns), "NO_COLOR": "1"})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
