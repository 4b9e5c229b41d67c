"""notices."""

import json

import pytest

from fakes.cli_session import flat, invoke
from fakes.notice_receivers import (
    CHANNEL,
    ENDPOINT,
    SECRET,
    SLACK_WEBHOOK,
    TEAMS,
    TOKEN,
    Refusal,
    is_signed,
    serve_receivers,
)
from fakes.receiver_store import TOPIC, FakeReceiverStore
from relaunch.adapters.notices.receivers import HELD
from relaunch.ports import NotGrantedError
from relaunch_cli.commands.notices import _HELD_SECONDS

DEFINITION = """jobs:
  resnet:
    task_definition: trainer
    container: main
    accelerator: {gpu: {memory: 16GiB}}
    notices: [team-ml, pager]
"""


@pytest.fixture
def store(session):
    store = FakeReceiverStore()
    session.stack_notices = store.of_stack()
    return store


@pytest.fixture
def services(session, store):
    with serve_receivers() as served:
        session.stack_notices = store.of_stack(served.sender)
        yield served


def add(session, *arguments, answer=""):
    return invoke("notices", "add", *arguments, session=session, answer=answer)


def test_an_address_is_read_from_standard_input_and_never_printed(session, store):
    added = add(session, "team-ml", "--kind", "slack", answer=f"{SLACK_WEBHOOK}\n")

    assert added.exit_code == 0
    assert json.loads(store.stored["team-ml"]) == {"kind": "slack", "url": SLACK_WEBHOOK}
    listed = [invoke("notices", "list", *each, session=session) for each in ((), ("--json",))]
    assert not any("secretpath" in each.stdout + each.stderr for each in (added, *listed))
    assert flat(listed[0].stdout).endswith(
        "team-ml slack all definitions finished, failed, waits-too-long, interrupted"
    )


def test_what_a_receiver_wants_is_stored(session, store):
    arguments = ("--kind", "slack", "--channel", CHANNEL, "--notice", "failed", "--named-only", "--waits-after", "5")
    add(session, "team", *arguments, answer=f"{TOKEN}\n")

    assert json.loads(store.stored["team"]) == {
        "kind": "slack",
        "token": TOKEN,
        "channel": CHANNEL,
        "kinds": ["failed"],
        "is_for_all": False,
        "waits_after_minutes": 5,
    }
    document = invoke("notices", "list", "--json", session=session).document
    assert document["receivers"] == [
        {"name": "team", "kind": "slack", "notices": ["failed"], "is_for_all": False, "problem": None}
    ]


def test_a_secret_is_made_and_printed_once_if_none_is_given(session, store):
    given = add(session, "given", "--kind", "webhook", "--json", answer=f"{ENDPOINT}\n{SECRET}\n")
    made = add(session, "made", "--kind", "webhook", "--json", answer=f"{ENDPOINT}\n\n")
    noted = add(session, "noted", "--kind", "webhook", answer=f"{ENDPOINT}\n")

    assert "secret" not in given.document
    assert json.loads(store.stored["made"])["secret"] == made.document["secret"]
    assert json.loads(store.stored["noted"])["secret"] in noted.stderr
    assert made.document["secret"].startswith("whsec_")


def test_one_of_the_same_name_is_replaced_only_if_that_is_wanted(session, store):
    for _ in range(2):
        again = add(session, "mail", "--kind", "sns", "--topic", TOPIC)
    assert again.exit_code == 2
    assert "--replace replaces it" in again.stderr

    assert add(session, "mail", "--kind", "teams", "--replace", answer=TEAMS).exit_code == 0
    assert json.loads(store.stored["mail"])["kind"] == "teams"


@pytest.mark.parametrize(
    ("arguments", "answer", "words"),
    [
        (("Team", "--kind", "slack"), SLACK_WEBHOOK, "no name of a receiver"),
        (("team", "--kind", "pigeon"), "", "slack, teams, discord, sns, webhook"),
        (("team", "--kind", "Slack"), "", "did you mean --kind slack?"),
        (("team", "--kind", "email"), "", "did you mean --kind sns?"),
        (("team", "--kind", "slack"), "", "no URL was given the URL of an incoming webhook begins with https://hooks."),
        (("team", "--kind", "slack"), "http://hooks.slack.com/secretpath", "it begins with https://"),
        (("team", "--kind", "slack"), "xoxb-secretpath", "with a bot token give --channel ID too"),
        (("team", "--kind", "slack", "--channel", "C01"), SLACK_WEBHOOK, "that is no bot token"),
        (("team", "--kind", "slack", "--channel", "C01"), "", "that is no bot token"),
        (("team", "--kind", "slack", "--channel", "team ml"), "", "it is at the end of the channel's details"),
        (("team", "--kind", "teams", "--channel", "C01"), "", "--channel is for --kind slack, not for teams"),
        (("team", "--kind", "discord"), "https://discordapp.com/secret", "https://discord.com/api/webhooks/"),
        (("team", "--kind", "slack", "--waits-after", "0"), "", "--waits-after is 1 to 20,160 minutes, not 0"),
        (("team", "--kind", "sns", "--topic", "training"), "", "`aws sns list-topics` lists them"),
        (("team", "--kind", "slack", "--notice", "fialed"), "", "did you mean failed?"),
        (("team", "--kind", "slack", "--notice", "waits_too_long"), "", "did you mean waits-too-long?"),
        (("team", "--kind", "slack", "--notice", "failed,finished"), "", "repeat the option for each kind"),
        (("team", "--kind", "slack"), "https://evil.example/secret", "may not go to the host evil.example"),
        (
            ("team", "--kind", "webhook"),
            "https://other.example/secret\n",
            "relaunch deploy NoticeHosts=hooks.example.com,other.example` lets",
        ),
        (("team", "--kind", "webhook"), f"{ENDPOINT}\nno-secret", "24 to 64 bytes in base64 leave it empty"),
        (
            ("team", "--kind", "sns", "--topic", f"{TOPIC}-other"),
            "",
            f"relaunch deploy NoticeTopicArns={TOPIC},{TOPIC}-other` lets",
        ),
        (("team", "--kind", "sns"), "", "a receiver of the kind sns needs --topic ARN"),
        (
            ("team", "--kind", "discord", "--topic", TOPIC),
            "https://discord.com/secret",
            "--topic is for --kind sns, not for discord",
        ),
        (
            ("team", "--kind", "slack", "--notice", "everything"),
            SLACK_WEBHOOK,
            "is no kind of notice There are started, interrupted",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_stored(session, store, arguments, answer, words):
    refused = add(session, *arguments, answer=answer)

    assert refused.exit_code == 2
    assert words in flat(refused.stderr)
    assert "secretpath" not in refused.stderr
    assert "/secret" not in refused.stderr
    assert store.stored == {}


def test_a_receiver_is_removed_after_asking(session, store):
    add(session, "mail", "--kind", "sns", "--topic", TOPIC)

    assert invoke("notices", "remove", "mail", session=session, answer="n\n").exit_code == 130
    assert invoke("notices", "remove", "mail", session=session).exit_code == 2
    assert store.stored
    assert invoke("notices", "remove", "mail", "--yes", "--json", session=session).document == {"removed": "mail"}
    gone = invoke("notices", "remove", "mail", "--yes", session=session)
    assert (gone.exit_code, "there is no receiver mail" in gone.stderr) == (3, True)
    add(session, "mail", "--kind", "sns", "--topic", TOPIC)
    assert f"{_HELD_SECONDS} seconds" in invoke("notices", "remove", "mail", "--yes", session=session).stdout
    assert HELD.total_seconds() == _HELD_SECONDS


def test_a_test_sends_one_of_each_kind_in_one_thread_and_says_what_was_answered(session, services):
    add(session, "team", "--kind", "slack", "--channel", CHANNEL, answer=TOKEN)
    services.refusals = [Refusal(200, "", "", json.dumps({"ok": True, "ts": "1.1"}))]

    tried = invoke("notices", "test", "team", "--json", session=session)

    assert tried.exit_code == 0
    assert [each["notice"] for each in tried.document["notices"]] == [
        "failed",
        "finished",
        "interrupted",
        "waits-too-long",
    ]
    assert {each["outcome"] for each in tried.document["notices"]} == {"delivered"}
    first, *others = (each.document for each in services.requests)
    assert "thread_ts" not in first
    assert {each["thread_ts"] for each in others} == {"1.1"}
    assert first["text"].startswith("Test: test-00000000 has failed\n")


def test_a_test_of_one_kind_that_is_refused_says_so(session, services):
    add(session, "team", "--kind", "webhook", answer=f"{ENDPOINT}\n{SECRET}\n")
    services.refusals = [Refusal(401, "", "")]

    refused = invoke("notices", "test", "team", "--kind", "budget", session=session)

    assert refused.exit_code == 5
    assert "budget postponed the endpoint answers HTTP 401" in flat(refused.stdout)
    (request,) = services.requests
    assert is_signed(request)
    assert invoke("notices", "test", "team", session=session).exit_code == 0


def test_what_cannot_be_tested_is_said(session, store):
    assert invoke("notices", "test", "gone", session=session).exit_code == 3
    add(session, "mail", "--kind", "sns", "--topic", TOPIC)
    unknown = invoke("notices", "test", "mail", "--kind", "all", session=session)
    assert (unknown.exit_code, "waits-too-long" in unknown.stderr) == (2, True)
    store.stored["broken"] = '{"kind": "pigeon"}'
    assert invoke("notices", "test", "broken", session=session).exit_code == 2
    listed = invoke("notices", "list", session=session)
    assert "broken" in listed.stdout
    assert "it is no receiver: kind" in flat(listed.stdout)


def test_a_stack_without_notices_says_how_to_get_them(session):
    session.stack_notices = None

    refused = invoke("notices", "list", session=session)

    assert refused.exit_code == 3
    assert "relaunch deploy Notices=on" in refused.stderr


def test_apply_says_which_receivers_there_are_not(session, store, tmp_path):
    file = tmp_path / "relaunch.yaml"
    file.write_text(DEFINITION)
    store.stored["team-ml"] = "{}"

    applied = invoke("apply", str(file), "--take-over", session=session)
    assert applied.exit_code == 0
    assert "resnet: notices: there is no receiver pager: relaunch notices add pager" in flat(applied.stderr)
    assert "no receiver team-ml" not in applied.stderr
    store.error = NotGrantedError("no permission")
    assert "is not checked: no permission" in flat(invoke("apply", str(file), "--take-over", session=session).stderr)
    session.stack_notices = None
    assert "relaunch deploy Notices=on" in invoke("apply", str(file), "--take-over", session=session).stderr
