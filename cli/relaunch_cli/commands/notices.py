"""`relaunch notices`."""

import base64
import json
import secrets
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from relaunch.adapters.notices.configuration import (
    KINDS,
    MalformedReceiverError,
    hosts_of,
    read_configuration,
    write_configuration,
)
from relaunch.adapters.notices.https_sender import HttpsSender, UnsendableError
from relaunch.core.notices.samples import sample_notice
from relaunch.ports.notices import Delivered
from relaunch_cli import exit_codes, receiver_options
from relaunch_cli.confirmation import confirm
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.value_completions import complete_notice, one_of
from relaunch_cli.views.notices import ReceiverRow, TestRow, render_receivers, render_tests
from relaunch_cli.views.screen import can_ask, print_json, print_note, print_result, print_text, progress

if TYPE_CHECKING:
    from relaunch.adapters.notices.configuration import ReceiverConfiguration
    from relaunch.core.definitions.notice_routes import NoticeKind
    from relaunch.core.notices.notice import Notice
    from relaunch.ports.notices import NoticeReceiver, Outcome
    from relaunch_cli.aws.notices import StackNotices

_HELD_SECONDS = 60  # what a container has read is used for so long (adapters.notices.receivers.HELD)
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the receiver, like team-ml.")]
# What is asked for, by the kind of a receiver: members of ReceiverConfiguration, and the question.
_QUESTIONS = {
    "slack": {"url": "URL of the incoming webhook"},
    "teams": {"url": "URL of the workflow"},
    "discord": {"url": "URL of the webhook"},
    "webhook": {"url": "URL of the endpoint", "secret": "Secret (whsec_…; empty: make one)"},
    "sns": {},
}


def list_(context: typer.Context, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the receivers of the stack's notices, without their addresses and secrets."""
    stored = connect(context, stack).notices.store.load()
    rows = [_make_row(name, stored[name]) for name in sorted(stored)]
    if as_json:
        print_json({"receivers": [row.to_json() for row in rows]})
    else:
        print_result(render_receivers(rows))


def add(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    name: _Name,
    *,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="slack, teams, discord, sns or webhook.",
            autocompletion=one_of("slack", "teams", "discord", "sns", "webhook"),
        ),
    ],
    channel: Annotated[
        str | None, typer.Option(metavar="CHANNEL", help="Slack's channel ID, for a bot token, which has threads.")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="ARN", help="The topic of SNS.")] = None,
    notices: Annotated[
        list[str] | None, typer.Option("--notice", metavar="NOTICE", help="A kind of notice that it gets; repeatable.")
    ] = None,
    is_named_only: Annotated[
        bool, typer.Option("--named-only", help="Send it notices of those definitions alone that name it.")
    ] = False,
    waits_after: Annotated[
        int | None, typer.Option("--waits-after", metavar="MINUTES", help="When a job waits too long; 60 by default.")
    ] = None,
    is_replaced: Annotated[bool, typer.Option("--replace", help="Replace the receiver of this name.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Add a receiver. Its URL, token or secret is asked for, or read from standard input, a line each."""
    receiver_options.check_name(name)
    receiver_options.check_kind(kind)
    receiver_options.check_place(kind, channel, topic)
    receiver_options.check_minutes(waits_after)
    kinds = receiver_options.read_kinds(notices or ())
    access = connect(context, stack).notices
    given: dict[str, Any] = {"kind": kind, "channel": channel, "topic_arn": topic, "is_for_all": not is_named_only}
    given |= {"kinds": kinds} if kinds else {}
    given |= {"waits_after_minutes": waits_after} if waits_after is not None else {}
    made = _ask(given)
    configuration = _configure(name, given)
    _check(access, name, configuration)
    if not access.store.save(name, write_configuration(configuration), is_new=not is_replaced):
        raise CommandError(f"there is a receiver {name} already", "--replace replaces it")
    row = _row_of(name, configuration)
    if as_json:
        print_json({**row.to_json(), **({"secret": made} if made else {})})
        return
    if made:
        print_note(f"The secret, which is not shown again: {made}")
    print_note(f"{name} is used within {_HELD_SECONDS} seconds; `relaunch notices test {name}` tries it out")


def remove(
    context: typer.Context,
    name: _Name,
    *,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Remove a receiver; definitions that name it are left as they are."""
    access = connect(context, stack).notices
    receiver_options.check_name(name)
    if not is_sure:
        confirm(f"Remove the receiver {name}?")
    if not access.store.delete(name):
        raise _unknown(name)
    if as_json:
        print_json({"removed": name})
    else:
        print_text(f"{name} was removed; it is used for up to {_HELD_SECONDS} seconds more")


def try_out(
    context: typer.Context,
    name: _Name,
    *,
    notices: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="NOTICE",
            help="Send this kind of notice alone; repeatable.",
            autocompletion=complete_notice,
        ),
    ] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Send a notice of each kind that a receiver gets, from this machine, and print what it answers."""
    access = connect(context, stack).notices
    stored = access.store.load()
    if name not in stored:
        raise _unknown(name)
    configuration = _read(name, stored[name])
    receiver = _make(access, name, configuration)
    with progress(f"sending to {name}"):
        rows = _send(receiver, receiver_options.read_kinds(notices or sorted(configuration.kinds)))
    if as_json:
        print_json({"receiver": name, "notices": [row.to_json() for row in rows]})
    else:
        print_result(render_tests(rows))
    if any(row.outcome != "delivered" for row in rows):
        raise CommandError(f"{name} did not take every notice", "correct it: --replace", exit_codes.REFUSED)


def _ask(given: dict[str, Any]) -> str:
    """Ask for what is secret of a receiver; return the secret that was made, empty if it was given."""
    questions: dict[str, str] = dict(_QUESTIONS.get(given["kind"], {}))
    if given["kind"] == "slack" and given["channel"]:
        questions = {"token": "Bot token (xoxb-…)"}
    for member, question in questions.items():
        given[member] = _read_secret(question)
    receiver_options.check_answers(given["kind"], given)
    if given["kind"] != "webhook" or given.get("secret"):
        return ""
    made = _make_secret()
    given["secret"] = made
    return made


def _read_secret(question: str) -> str:
    """Return a line that nobody sees; of a pipe the next one."""
    if not can_ask():
        return sys.stdin.readline().strip()
    try:
        return str(typer.prompt(question, default="", hide_input=True, show_default=False, err=True)).strip()
    except typer.Abort:
        raise CommandError("nothing was added", exit_code=exit_codes.CANCELLED) from None


def _make_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def _configure(name: str, given: dict[str, Any]) -> "ReceiverConfiguration":
    return _read(name, json.dumps({key: value for key, value in given.items() if value is not None}))


def _read(name: str, text: str) -> "ReceiverConfiguration":
    try:
        return read_configuration(text)
    except MalformedReceiverError as error:
        hint = f"--kind is one of {', '.join(KINDS)}; docs/notices.md has what each needs"
        raise CommandError(f"receiver {name}: {error}", hint) from error


def _check(access: "StackNotices", name: str, configuration: "ReceiverConfiguration") -> None:
    """Check an address, a topic and a secret, before anything is stored."""
    _make(access, name, configuration)
    if configuration.url is None:
        return
    hosts = hosts_of(configuration.kind, access.maker.notice_hosts)
    try:
        HttpsSender(hosts).check(configuration.url.get_secret_value())
    except UnsendableError as error:
        host = urlsplit(configuration.url.get_secret_value()).hostname or ""
        hint = receiver_options.hint_of_host(configuration.kind, host, access.maker.notice_hosts)
        raise CommandError(f"receiver {name}: {error}", hint) from error


def _make(access: "StackNotices", name: str, configuration: "ReceiverConfiguration") -> "NoticeReceiver":
    try:
        return access.maker.make(configuration, configuration.subscription(name))
    except MalformedReceiverError as error:
        topics = ",".join([*access.maker.topic_arns, configuration.topic_arn or ""])
        hint = (
            f"`relaunch deploy NoticeTopicArns={topics}` lets notices go there"
            if configuration.kind == "sns"
            else "leave it empty to have one made"
        )
        raise CommandError(f"receiver {name}: {error}", hint) from error


def _send(receiver: "NoticeReceiver", kinds: "Sequence[NoticeKind]") -> "list[TestRow]":
    rows = []
    thread = ""
    for sequence, kind in enumerate(kinds, 1):
        notice: Notice = sample_notice(kind, sequence, _now())
        outcome = receiver.deliver(notice, thread)
        thread = outcome.thread if isinstance(outcome, Delivered) else thread
        rows.append(_test_row(kind.value, outcome))
    return rows


def _now() -> Any:
    return datetime.now(UTC)


def _test_row(kind: str, outcome: "Outcome") -> "TestRow":
    answer = outcome.answer if isinstance(outcome, Delivered) else outcome.reason
    return TestRow(kind, type(outcome).__name__.lower(), answer)


def _make_row(name: str, text: str) -> "ReceiverRow":
    try:
        return _row_of(name, _read(name, text))
    except CommandError as error:
        return ReceiverRow(name, problem=str(error))


def _row_of(name: str, configuration: "ReceiverConfiguration") -> "ReceiverRow":
    kinds = tuple(kind.value for kind in configuration.kinds)
    return ReceiverRow(name, configuration.kind, kinds, configuration.is_for_all)


def _unknown(name: str) -> CommandError:
    return CommandError(f"there is no receiver {name}", "`relaunch notices list` lists them", exit_codes.NOT_FOUND)


group = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Manage the receivers of notices: Slack, e-mail and others."
)
group.command("list")(list_)
group.command()(add)
group.command()(remove)
group.command("test")(try_out)
