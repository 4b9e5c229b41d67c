"""definitions."""

from fakes.cli_session import CliSession


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
