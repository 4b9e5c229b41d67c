"""A function does nothing beside its entry point."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from relaunch.entrypoints.consumers import CONSUMERS, handler_of

HANDLERS = sorted((REPOSITORY / "functions").glob("*/handler.py"))
# Without github_webhook, which makes its clients itself: it lives on the standard library.
OF_POWERTOOLS = [handler for handler in HANDLERS if handler.parent.name != "github_webhook"]
ALLOWED_IMPORTS = re.compile(
    r"typing|aws_lambda_powertools\.utilities\..*|relaunch\.(?:delivery_)?bootstrap|relaunch\.entrypoints\..*|relaunch\.usecases\..*"
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
    _docstring, *statements, handle = ast.parse(handler.read_text()).body
    assert isinstance(handle, ast.FunctionDef)
    _docstring, _answer = handle.body
    assert [ast.unparse(decorator) for decorator in handle.decorator_list] == ["with_metrics"]
    names = {}
    if handler.parent.name in CONSUMERS:
        assert ast.unparse(statements.pop()) == f"_consume = consumer('{handler.parent.name}')"
        names["_consume"] = "relaunch.entrypoints.consumers"
    for statement in statements:
        assert isinstance(statement, ast.ImportFrom)
        assert ALLOWED_IMPORTS.fullmatch(statement.module or "")
        names |= {alias.name: statement.module for alias in statement.names}

    assert re.match(r"relaunch\.(entrypoints|usecases)\.", names[called_by(handle)])


def test_the_webhook_answers_what_its_entry_point_answers() -> None:
    tree = ast.parse((REPOSITORY / "functions" / "github_webhook" / "handler.py").read_text())
    handle = tree.body[-1]
    assert isinstance(handle, ast.FunctionDef)

    assert called_by(handle) == "handle_request"


@pytest.mark.parametrize("queue", CONSUMERS.values())
def test_the_entry_point_of_a_queue_says_so(queue: str) -> None:
    entry_point = inspect.getmodule(handler_of(queue))

    assert entry_point is not None
    assert (entry_point.__doc__ or "").startswith(f"The queue `{queue}`: ")
