"""What a shell is told of the stack: in time, and nothing that it could be led astray by."""

import threading
from types import SimpleNamespace

import pytest
from typer.main import get_command

from fakes.builders import make_definition
from relaunch.core.jobs.budgets import Budget
from relaunch_cli import completions
from relaunch_cli.app import app
from relaunch_cli.completions import complete_budget, complete_definition, complete_job, complete_scope


@pytest.fixture
def context(session):
    """The context of a command line that is not finished."""
    return SimpleNamespace(find_root=lambda: SimpleNamespace(obj=session), params={"stack": "relaunch"})


def test_jobs_are_completed_with_their_states_the_newest_first(session, context):
    first = session.submit("a")
    session.clock.advance(1)
    second = session.submit("b")

    assert complete_job(context, "") == [(second, "WAITING"), (first, "WAITING")]
    assert complete_job(context, first) == [(first, "WAITING")]
    assert complete_job(context, "bert") == []


def test_definitions_are_completed_with_what_they_run(session, context):
    session.register(make_definition(name="bert", task_definition="encoder"))

    assert complete_definition(context, "") == [("bert", "encoder"), ("resnet", "trainer")]
    assert complete_definition(context, "re") == [("resnet", "trainer")]


def test_scopes_of_budgets_are_completed(session, context):
    budgets = session.deps.budgets
    budgets.set_budget(Budget("repository/acme/vision"), 1.0, None, {})
    budgets.set_budget(Budget("definition/resnet"), None, 1.0, {})
    budgets.set_budget(Budget("caller/$(id)"), 1.0, None, {})
    budgets.set_budget(Budget("stack"), None, None, {})

    assert [word for word, _ in complete_scope(context, "")] == ["stack", "definition/resnet", "repository/acme/vision"]
    assert complete_scope(context, "repo") == [("repository/acme/vision", "")]
    assert [word for word, _ in complete_budget(context, "")] == ["definition/resnet", "repository/acme/vision"]


def test_an_error_completes_nothing_and_says_nothing(context, monkeypatch, capsys):
    def fail(*_arguments):
        raise RuntimeError("no credentials")

    monkeypatch.setattr(completions, "connect", fail)

    assert complete_job(context, "") == []
    assert capsys.readouterr() == ("", "")


def test_what_takes_too_long_is_not_waited_for(context, monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(completions, "_SECONDS", 0.01)
    monkeypatch.setattr(completions, "connect", lambda *_arguments: answered.wait())

    assert complete_job(context, "") == []
    answered.set()


@pytest.mark.parametrize("name", ["a$(id)", "a'b", 'a"b', "a`id`", "a b", "a\nb", "a;b", "a\\b"])
def test_a_name_that_a_shell_might_evaluate_is_left_out(session, context, name):
    session.register(make_definition(name=name))
    session.register(make_definition(name="good", task_definition=name))

    assert [word for word, _ in complete_definition(context, "")] == ["resnet"]


@pytest.mark.parametrize("command", [["submit"], ["plan"], ["definitions", "show"], ["definitions", "delete"]])
def test_every_command_that_takes_a_definition_completes_it(context, command):
    known = get_command(app)
    for name in command:
        known = known.commands[name]
    (argument,) = (each for each in known.params if each.param_type_name == "argument")

    assert [item.value for item in argument.shell_complete(context, "re")] == ["resnet"]
