"""apply: whose definitions are replaced and removed."""

import json
import os
import select
import shutil
import subprocess
import sys

import pytest

from fakes.builders import make_definition
from fakes.cli_session import flat, rewrite
from relaunch.core.definitions.ownership import Owner

BOB = Owner("github.com/acme/vision", "train/relaunch.yaml", "arn:aws:iam::111122223333:user/bob")


AT_A_TERMINAL = """
import fcntl, signal, sys, termios
from fakes.builders import make_definition
from fakes.cli_session import CliSession
from relaunch_cli.app import app
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
# What a shell starts in the background ignores Ctrl-C, and so would this.
signal.signal(signal.SIGINT, signal.default_int_handler)
session = CliSession()
session.register(make_definition(name="old"))
try:
    app(["apply", sys.argv[1], "--prune"], obj=session)
except SystemExit as end:
    names = [each.name for each in session.deps.definitions.list_definitions()]
    print("ended with", end.code, names, session.upload_rules.log)
"""


@pytest.fixture
def names(session):
    return lambda: [each.name for each in session.deps.definitions.list_definitions()]


@pytest.fixture
def owners(session):
    return lambda: {each.definition.name: each.owner for each in session.deps.definitions.list_registered()}


@pytest.fixture
def _terminal(monkeypatch):
    monkeypatch.setattr("relaunch_cli.commands.apply.can_ask", lambda: True)


def test_definitions_are_registered_with_their_owner_and_shown_with_it(relaunch, session, file, owners):
    relaunch("apply", str(file))

    shown = flat(relaunch("definitions", columns=200).stdout)
    documents = relaunch("definitions", "--json").document["definitions"]

    assert owners() == {"bert": session.owner, "resnet": session.owner}
    assert "relaunch.yaml s3://acme/in/*" in shown
    assert [each["owner"] for each in documents] == [
        {"repository": None, "file": "relaunch.yaml", "caller": "arn:aws:iam::111122223333:user/ada"}
    ] * 2


@pytest.mark.parametrize("is_same", [True, False])
def test_a_definition_of_another_owner_is_refused_whatever_its_content(relaunch, session, file, owners, is_same):
    relaunch("apply", str(file))
    other = session.deps.definitions.load_definition("bert") if is_same else make_definition(name="bert")
    session.deps.definitions.save_definition(other, BOB)

    result = relaunch("apply", str(file))

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "bert is registered from github.com/acme/vision:train/relaunch.yaml, which "
        "arn:aws:iam::111122223333:user/bob applied",
        "relaunch: relaunch.yaml, applied by arn:aws:iam::111122223333:user/ada, has definitions of other owners: "
        "nothing was registered",
        "          give it another name, apply the file it belongs to, or take it over: --take-over",
    ]
    assert owners()["bert"] == BOB


def test_a_definition_is_taken_over_when_the_word_is_said(relaunch, session, file, owners):
    session.deps.definitions.save_definition(make_definition(name="bert"), BOB)

    result = relaunch("apply", str(file), "--take-over", "--json")

    assert result.exit_code == 0
    bert = result.document["definitions"][1]
    assert (bert["change"], bert["is_taken_over"]) == ("replaced", True)
    assert bert["owner_before"] == {
        "repository": "github.com/acme/vision",
        "file": "train/relaunch.yaml",
        "caller": "arn:aws:iam::111122223333:user/bob",
    }
    assert result.stderr.splitlines()[0] == (
        "bert: taken over from github.com/acme/vision:train/relaunch.yaml, which arn:aws:iam::111122223333:user/bob "
        "applied"
    )
    assert owners()["bert"] == session.owner


def test_a_definition_without_an_owner_is_taken_over_with_a_note_also_when_nothing_changes(
    relaunch, session, file, owners
):
    relaunch("apply", str(file))
    bert = session.deps.definitions.load_definition("bert")
    session.deps.definitions.save_definition(bert)

    first, second = relaunch("apply", str(file)), relaunch("apply", str(file))

    assert first.exit_code == second.exit_code == 0
    assert first.stderr == "bert: taken over by this file; an earlier release registered it, without an owner\n"
    assert second.stderr == ""
    assert owners()["bert"] == session.owner


def test_a_colleague_applies_the_same_file_of_a_repository(relaunch, session, file, owners):
    for command in (["init"], ["remote", "add", "origin", "git@github.com:acme/vision.git"]):
        _git(file.parent, *command)
    session.deps.definitions.delete_definition("resnet")
    relaunch("apply", str(file))
    session.caller = "arn:aws:sts::111122223333:assumed-role/Deploy"
    rewrite(file, "accelerator: {gpu: {}}", "accelerator: {gpu: {}}\n    max_failures: 7")

    result = relaunch("apply", str(file))

    assert result.exit_code == 0
    callers = {name: owner.caller for name, owner in owners().items()}
    assert callers == {
        "resnet": "arn:aws:iam::111122223333:user/ada",
        "bert": "arn:aws:sts::111122223333:assumed-role/Deploy",
    }


class TestPrune:
    def test_without_a_terminal_nothing_is_removed_unless_yes_is_said(self, relaunch, session, file, names):
        session.register(make_definition(name="old"))

        refused = relaunch("apply", str(file), "--prune", "--json")
        before = names()
        sure = relaunch("apply", str(file), "--prune", "--yes", "--json")

        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--prune would remove old, and there is no terminal to ask: nothing was registered" in refused.stderr
        assert "--yes removes without asking" in refused.stderr
        assert before == ["old", "resnet"]
        assert [each["change"] for each in sure.document["definitions"]] == ["replaced", "created", "removed"]
        assert names() == ["bert", "resnet"]

    @pytest.mark.usefixtures("_terminal")
    def test_at_a_terminal_it_shows_what_it_would_remove_and_asks(self, relaunch, session, file, names):
        session.register(make_definition(name="old"))

        no = relaunch("apply", str(file), "--prune", answer="n\n", columns=120)
        before = names()
        yes = relaunch("apply", str(file), "--prune", "--json", answer="y\n")

        assert no.exit_code == 130
        assert "old trainer 1x GPU 16 GiB relaunch.yaml push acme/vision [main]" in flat(no.stderr)
        assert "Remove old? [y/N]" in no.stderr
        assert "nothing was registered, and nothing removed" in no.stderr
        assert before == ["old", "resnet"]
        # The runner shows on standard output what is typed.
        document = json.loads(yes.stdout.removeprefix(" y\n"))
        assert [each["change"] for each in document["definitions"]] == ["replaced", "created", "removed"]
        assert names() == ["bert", "resnet"]

    @pytest.mark.parametrize("typed", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
    def test_an_end_at_the_question_removes_and_registers_nothing(self, file, typed):
        shown = answer_at_a_terminal(file, typed)

        assert "relaunch: not confirmed: nothing was registered" in shown
        assert "ended with 130 ['old', 'resnet'] []" in shown

    def test_yes_at_the_terminal_removes(self, file):
        assert "ended with 0 ['bert', 'resnet']" in answer_at_a_terminal(file, "y\n")

    def test_nothing_to_remove_is_no_question(self, relaunch, file, names):
        assert relaunch("apply", str(file), "--prune").exit_code == 0
        assert names() == ["bert", "resnet"]

    def test_a_dry_run_shows_the_removal_and_asks_nothing(self, relaunch, session, file, names):
        session.register(make_definition(name="old"))

        result = relaunch("apply", str(file), "--prune", "--dry-run")

        assert result.exit_code == 0
        assert "removed" in result.stdout
        assert names() == ["old", "resnet"]

    def test_definitions_of_others_and_of_nobody_stay_unless_they_are_taken_over(self, relaunch, session, file, names):
        session.deps.definitions.save_definition(make_definition(name="theirs"), BOB)
        session.deps.definitions.save_definition(make_definition(name="nobodys"))
        session.register(make_definition(name="own"))

        own = relaunch("apply", str(file), "--prune", "--yes")
        left = names()
        everything = relaunch("apply", str(file), "--prune", "--yes", "--take-over")

        assert own.exit_code == everything.exit_code == 0
        assert "not removed, as they were not registered from this file: nobodys, theirs; --take-over" in own.stderr
        assert left == ["bert", "nobodys", "resnet", "theirs"]
        assert "theirs: removed from github.com/acme/vision:train/relaunch.yaml" in everything.stderr
        assert "nobodys: removed; an earlier release registered it, without an owner" in everything.stderr
        assert names() == ["bert", "resnet"]


class TestRaces:
    """Somebody registers or removes a definition after it was compared, while the rules of triggers are put."""

    @pytest.fixture
    def meanwhile(self, session):
        def happen(action):
            session.upload_rules.on_change = [action]

        return happen

    def test_what_somebody_replaced_meanwhile_is_not_lost(self, relaunch, session, file, meanwhile, owners):
        theirs = make_definition(max_failures=9)
        meanwhile(lambda: session.deps.definitions.save_definition(theirs, BOB))

        result = relaunch("apply", str(file))

        assert result.exit_code == 4
        assert "perhaps not all definitions are registered: apply again" in result.stderr
        assert "definition resnet was changed by others meanwhile and is left as it is" in result.stderr
        assert session.deps.definitions.load_definition("resnet") == theirs
        assert relaunch("apply", str(file)).exit_code == 2
        assert owners()["resnet"] == BOB

    def test_what_somebody_created_meanwhile_is_not_lost(self, relaunch, session, file, meanwhile):
        theirs = make_definition(name="bert", max_failures=9)
        meanwhile(lambda: session.deps.definitions.save_definition(theirs, BOB))

        assert relaunch("apply", str(file)).exit_code == 4
        assert session.deps.definitions.load_definition("bert") == theirs

    def test_what_somebody_replaced_meanwhile_is_not_removed(self, relaunch, session, file, meanwhile, owners):
        session.register(make_definition(name="old"))
        meanwhile(lambda: session.deps.definitions.save_definition(make_definition(name="old"), BOB))

        assert relaunch("apply", str(file), "--prune", "--yes").exit_code == 4
        assert owners()["old"] == BOB

    def test_what_somebody_removed_meanwhile_is_gone_as_it_should_be(self, relaunch, session, file, meanwhile, names):
        session.register(make_definition(name="old"))
        meanwhile(lambda: session.deps.definitions.delete_definition("old"))

        assert relaunch("apply", str(file), "--prune", "--yes").exit_code == 0
        assert names() == ["bert", "resnet"]


def _git(folder, *arguments):
    subprocess.run([shutil.which("git"), "-C", str(folder), *arguments], check=True, capture_output=True)


def answer_at_a_terminal(file, typed):
    """Apply a file with --prune at a terminal, answer its question, and return all that is shown."""
    terminal, inner = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", AT_A_TERMINAL, str(file)],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(inner)
    shown = ""
    try:
        is_typed = False
        while True:
            # A Ctrl-C that comes just before the question is read is lost: whoever types it does so again.
            if not select.select([terminal], [], [], 1.0)[0]:
                is_typed = is_typed and typed != "\x03"
            elif part := _read(terminal):
                shown += part
            else:
                break
            if "[y/N]" in shown and not is_typed:
                os.write(terminal, typed.encode())
                is_typed = True
    finally:
        os.close(terminal)
        process.wait()
    return shown


def _read(terminal):
    try:
        return os.read(terminal, 4096).decode(errors="replace")
    except OSError:  # Linux answers EIO once nobody has the other side open
        return ""
