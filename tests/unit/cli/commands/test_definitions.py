"""definitions: list, show, delete."""

import pytest
import typer

from fakes.builders import make_definition
from fakes.cli_session import CliSession
from relaunch.core.definitions.definition import S3Trigger
from relaunch.ports import PermanentError


def test_definitions_are_listed_with_what_starts_them(relaunch, session, file):
    relaunch("apply", str(file))

    result = relaunch("definitions")
    documents = relaunch("definitions", "--json").document["definitions"]

    assert [line.split()[0] for line in result.stdout.splitlines()] == ["DEFINITION", "bert", "resnet"]
    assert "s3://acme/in/*" in result.stdout
    assert [document["name"] for document in documents] == ["bert", "resnet"]
    assert documents[0]["on"] == [{"s3": {"bucket": "acme", "prefix": "in/", "suffix": ""}}]


def test_an_empty_stack_says_how_to_register(relaunch, session: CliSession):
    session.deps.definitions.delete_definition("resnet")

    result = relaunch("definitions")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "relaunch apply FILE" in result.stderr


def test_a_definition_is_shown_in_the_words_of_a_file_that_apply_takes(relaunch, session, file, tmp_path):
    relaunch("apply", str(file))
    registered = session.deps.definitions.load_definition("bert")

    shown = relaunch("definitions", "show", "bert")
    written = relaunch("definitions", "show", "bert", "--yaml")

    assert shown.stdout.splitlines()[:3] == [
        "# registered from relaunch.yaml, applied by arn:aws:iam::111122223333:user/ada",
        "jobs:",
        "  bert:",
    ]
    assert shown.stdout.splitlines()[1:] == written.stdout.splitlines()
    file.write_text(written.stdout, encoding="utf-8")
    (again,) = relaunch("apply", str(file), "--json").document["definitions"]
    assert again["change"] == "unchanged"
    assert session.deps.definitions.load_definition("bert") == registered


def test_a_definition_of_an_earlier_release_has_no_owner(relaunch, session):
    session.deps.definitions.save_definition(make_definition(name="old"))

    assert relaunch("definitions", "show", "old").stdout.startswith("# registered by an earlier release, without an")


def test_a_definition_as_json_is_the_one_of_the_list(relaunch, session, file):
    relaunch("apply", str(file))

    document = relaunch("definitions", "show", "bert", "--json").document

    assert document == relaunch("definitions", "--json").document["definitions"][0]


@pytest.mark.parametrize("command", [("show", "resnte"), ("delete", "resnte", "--yes")])
def test_a_definition_that_is_not_there_names_the_nearest(relaunch, command):
    result = relaunch("definitions", *command)

    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no job definition 'resnte'" in result.stderr
    assert "did you mean resnet?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("show", "resnet", "--yaml", "--json"), "--yaml and --json cannot be combined"),
        (("--stack", "other", "show", "resnet"), "--stack stands behind `show`"),
        (("--json", "delete", "resnet"), "--json stands behind `delete`"),
        (("shwo", "resnet"), "No such command 'shwo'"),
    ],
)
def test_wrong_usage_is_refused(relaunch, session, arguments, text):
    result = relaunch("definitions", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr
    assert session.deps.definitions.load_definition("resnet") is not None


def test_the_stack_of_the_environment_is_that_of_every_subcommand(relaunch, monkeypatch):
    monkeypatch.setenv("RELAUNCH_STACK", "prod")

    assert relaunch("definitions", "show", "resnet").exit_code == 0


def test_a_deleted_definition_starts_nothing_and_its_open_jobs_go_on(relaunch, session):
    job_id = session.submit()

    result = relaunch("definitions", "delete", "resnet", "--yes")

    assert (result.exit_code, result.stdout) == (0, "resnet is deleted\n")
    assert relaunch("submit", "resnet").exit_code == 3
    session.run(session.launch(job_id))
    assert session.jobs.job(job_id).state == "RUNNING"


def test_the_rules_for_its_uploads_go_with_it_and_those_of_others_stay(relaunch, session, file):
    session.on_pause = [lambda: None] * 9
    relaunch("apply", str(file))
    session.register(make_definition(name="other", triggers=(S3Trigger("acme", "in/"),)))

    first = relaunch("definitions", "delete", "bert", "--yes", "--json").document
    second = relaunch("definitions", "delete", "other", "--yes")

    assert first["deleted"]["name"] == "bert"
    assert first["rules"] == []
    assert second.stderr == "rule relaunch-relaunch-iv6x4gppdng4 for uploads to acme: removed\n"
    assert session.upload_rules.found == {}


def test_what_others_changed_meanwhile_is_left_as_it_is(relaunch, session, monkeypatch):
    monkeypatch.setattr("relaunch_cli.commands.definitions.can_ask", lambda: True)
    changed = make_definition(command=("changed",))
    monkeypatch.setattr(typer, "confirm", lambda *_a, **_k: session.register(changed) or True)

    result = relaunch("definitions", "delete", "resnet")

    assert result.exit_code == 4
    assert "try again" in result.stderr
    assert session.deps.definitions.load_definition("resnet") == changed


def test_what_others_deleted_meanwhile_is_not_found(relaunch, session, monkeypatch):
    monkeypatch.setattr("relaunch_cli.commands.definitions.can_ask", lambda: True)
    delete = session.deps.definitions.delete_definition
    monkeypatch.setattr(typer, "confirm", lambda *_a, **_k: delete("resnet"))

    assert relaunch("definitions", "delete", "resnet").exit_code == 3


@pytest.mark.parametrize(("answer", "is_deleted"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_a_person_is_asked_first(relaunch, session, monkeypatch, answer, is_deleted):
    monkeypatch.setattr("relaunch_cli.commands.definitions.can_ask", lambda: True)

    result = relaunch("definitions", "delete", "resnet", answer=answer)

    assert result.exit_code == (0 if is_deleted else 130)
    assert (session.deps.definitions.load_definition("resnet") is None) is is_deleted
    assert "Delete resnet? Its open jobs go on [y/N]" in result.stderr


def test_without_a_terminal_nobody_is_asked_and_nothing_is_deleted(relaunch, session):
    result = relaunch("definitions", "delete", "resnet")

    assert result.exit_code == 2
    assert "--yes deletes without asking" in result.stderr
    assert session.deps.definitions.load_definition("resnet") is not None


def test_rules_that_cannot_be_settled_are_told(relaunch, session, file):
    session.on_pause = [lambda: None] * 9
    relaunch("apply", str(file))
    session.upload_rules.on_change = [raise_refusal]

    result = relaunch("definitions", "delete", "bert", "--yes")

    assert result.exit_code == 5
    assert "the definition is deleted, but not all rules of triggers are up to date" in result.stderr
    assert session.deps.definitions.load_definition("bert") is None


def raise_refusal() -> None:
    raise PermanentError("AWS denies DeleteRule")
