"""A function does nothing beside its entry point, and the simulation runs the same entry points."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from relaunch_local.simulation.aws.lambda_functions import CONSUMERS
from relaunch_local.simulation.aws.template import read_stack

HANDLERS = sorted((REPOSITORY / "functions").glob("*/handler.py"))
# Without github_webhook, which makes its clients itself: it lives on the standard library.
OF_POWERTOOLS = [handler for handler in HANDLERS if handler.parent.name != "github_webhook"]
ALLOWED_IMPORTS = re.compile(
    r"typing|aws_lambda_powertools\.utilities\..*|relaunch\.bootstrap|relaunch\.entrypoints\..*|relaunch\.usecases\..*"
)


def called_by(handle: ast.FunctionDef) -> str:
    """Return what a handler calls to make its answer."""
    statement = handle.body[-1]
    assert isinstance(statement, ast.Return)
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Name)
    return statement.value.func.id


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.parent.name)
def test_a_handler_is_short_and_its_package_has_no_other_module(handler: Path) -> None:
    assert len(handler.read_text().splitlines()) < 40
    assert {path.name for path in handler.parent.glob("*.py")} == {"__init__.py", "handler.py"}


@pytest.mark.parametrize("handler", OF_POWERTOOLS, ids=lambda handler: handler.parent.name)
def test_a_handler_returns_what_one_entry_point_answers_and_does_nothing_else(handler: Path) -> None:
    _docstring, *imports, handle = ast.parse(handler.read_text()).body
    assert isinstance(handle, ast.FunctionDef)
    _docstring, _answer = handle.body
    assert [ast.unparse(decorator) for decorator in handle.decorator_list] == ["with_metrics"]
    names = {}
    for statement in imports:
        assert isinstance(statement, ast.ImportFrom)
        assert ALLOWED_IMPORTS.fullmatch(statement.module or "")
        names |= {alias.name: statement.module for alias in statement.names}

    assert re.match(r"relaunch\.(entrypoints|usecases)\.", names[called_by(handle)])


def test_the_webhook_answers_what_its_entry_point_answers() -> None:
    tree = ast.parse((REPOSITORY / "functions" / "github_webhook" / "handler.py").read_text())
    handle = tree.body[-1]
    assert isinstance(handle, ast.FunctionDef)

    assert called_by(handle) == "handle_request"


def test_the_simulation_consumes_every_queue_by_the_entry_point_of_its_function() -> None:
    consuming = {name: function.sources for name, function in read_stack().functions.items() if function.sources}

    assert set(CONSUMERS) == set(consuming)
    for name, (queue, handle_message) in CONSUMERS.items():
        assert consuming[name][0].queue == "".join(word.title() for word in queue.split("-")) + "Queue"
        assert importlib.import_module(f"{name}.handler").handle_message is handle_message
        assert f'handle_batch("{queue}", ' in (REPOSITORY / "functions" / name / "handler.py").read_text()
