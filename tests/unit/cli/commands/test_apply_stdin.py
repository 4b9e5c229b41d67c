"""apply -: a definition file from standard input."""

from fakes.builders import make_definition
from fakes.cli_session import DEFINITIONS
from relaunch.core.definitions.ownership import Owner


def test_a_file_is_read_from_standard_input(relaunch, session):
    session.deps.definitions.delete_definition("resnet")

    result = relaunch("apply", "-", answer=DEFINITIONS.replace("\n", "\r\n"))

    assert result.exit_code == 0
    registered = {each.definition.name: each.owner for each in session.deps.definitions.list_registered()}
    assert registered == dict.fromkeys(["bert", "resnet"], Owner("", "stdin", session.caller))


def test_problems_of_standard_input_have_its_name(relaunch):
    result = relaunch("apply", "-", answer=DEFINITIONS.replace("container:", "contaner:"))

    assert result.exit_code == 2
    assert result.stderr.startswith("-:4:5: jobs.resnet.contaner: unknown key `contaner`")
    assert "- has 1 problem: nothing was registered" in result.stderr


def test_standard_input_that_answers_no_question_prunes_nothing_without_yes(relaunch, session):
    owner = Owner("", "stdin", session.caller)
    session.deps.definitions.save_definition(make_definition(name="old"), owner)

    refused = relaunch("apply", "-", "--prune", "--take-over", answer=DEFINITIONS)

    assert refused.exit_code == 2
    assert "--prune would remove old" in refused.stderr
    assert session.deps.definitions.load_definition("old") is not None


def test_a_file_from_standard_input_is_planned(relaunch):
    document = relaunch("plan", "-", "--json", answer=DEFINITIONS).document

    assert [plan["definition"] for plan in document["plans"]] == ["resnet", "bert"]
