"""Generates docs/notice-examples.md: what receivers are sent of a job, made by the code that sends it.

Run `python -m relaunch_local.pages.notice_examples docs/notice-examples.md`.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from relaunch.adapters.notices.configuration import ReceiverConfiguration
from relaunch.adapters.notices.https_sender import Answer, HttpsSender
from relaunch.adapters.notices.receivers import ReceiverMaker
from relaunch.bootstrap import SystemClock
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.lifecycle.change_events import EventTrigger
from relaunch.core.notices.notice import Notice
from relaunch.core.notices.samples import sample_notice

_NOW = datetime(2026, 11, 3, 12, 45, tzinfo=UTC)
_JOB_ID = "resnet-1f2e3d4c"
_TOPIC = "arn:aws:sns:us-east-1:111122223333:training"
_PAGE_URL = "https://jobs.example.com/{job_id}"
# Words as jobs have them; those of a notice that a person tries out are made to break receivers.
_REASONS = {
    NoticeKind.STARTED: "",
    NoticeKind.INTERRUPTED: "the machine was taken away (spot interruption warning for i-0a1b2c3d4e5f60718)",
    NoticeKind.FINISHED: "the program finished (exit code 0; Essential container in task exited)",
    NoticeKind.FAILED: "the program failed (exit code 1; Essential container in task exited)",
    NoticeKind.WAITS_TOO_LONG: "every offering that satisfies it failed recently",
}
_RECEIVERS: Mapping[str, Mapping[str, str]] = {
    "Slack": {"kind": "slack", "channel": "C0123ABCD", "token": "xoxb-example"},
    "Microsoft Teams": {"kind": "teams", "url": "https://example.westeurope.logic.azure.com/workflows/w"},
    "Discord": {"kind": "discord", "url": "https://discord.com/api/webhooks/1/example"},
    "Any endpoint": {
        "kind": "webhook",
        "url": "https://hooks.example.com/relaunch",
        "secret": f"whsec_{'A' * 32}",
    },
}
_HEAD = """\
# Examples of notices

Made by the code that sends [notices](notices.md):
`python -m relaunch_local.pages.notice_examples docs/notice-examples.md`.

The stack has `JobPageUrl=https://jobs.example.com/{job_id}`; without one there is no address of a page.

## By e-mail

The other services have the same words. The first line is the subject."""


@dataclass
class _Sent:
    """Takes the place of the services: keeps what they are sent."""

    bodies: list[bytes] = field(default_factory=list)
    mails: list[Mapping[str, str]] = field(default_factory=list)

    def publish(self, **mail: str) -> Mapping[str, str]:
        self.mails.append(mail)
        return {}

    def sender(self, hosts: Sequence[str]) -> HttpsSender:
        return _KeepingSender(hosts, self.bodies)


class _KeepingSender(HttpsSender):
    def __init__(self, hosts: Sequence[str], bodies: list[bytes]) -> None:
        super().__init__(hosts)
        self._bodies = bodies

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        del url, headers
        self._bodies.append(body)
        return Answer(200, b'{"ok": true, "ts": "1"}')


def render_page() -> str:
    """Return the page."""
    mails = (line for kind in _REASONS for line in _mail(kind))
    others = (line for service in _RECEIVERS for line in _service(service))
    return "\n".join([_HEAD, *mails, *others]) + "\n"


def _mail(kind: NoticeKind) -> Iterator[str]:
    sent = _deliver({"kind": "sns", "topic_arn": _TOPIC}, kind)
    (mail,) = sent.mails
    yield from ("", f"### `{kind}`", "", "```text", mail["Subject"], "", mail["Message"].partition("\n")[2], "```")


def _service(service: str) -> Iterator[str]:
    (body,) = _deliver(_RECEIVERS[service], NoticeKind.INTERRUPTED).bodies
    content = json.dumps(json.loads(body), indent=1, ensure_ascii=False)
    yield from ("", f"## {service}: `interrupted`", "", "```json", content, "```")


def _deliver(document: Mapping[str, str], kind: NoticeKind) -> _Sent:
    sent = _Sent()
    hosts = ("hooks.example.com",)
    maker = ReceiverMaker(hosts, (_TOPIC,), sent, SystemClock(), sent.sender, _PAGE_URL)
    configuration = ReceiverConfiguration.model_validate(document)
    maker.make(configuration, configuration.subscription("example")).deliver(_notice(kind), "")
    return sent


def _notice(kind: NoticeKind) -> Notice:
    made = sample_notice(kind, 9, _NOW)
    is_before = kind is NoticeKind.STARTED
    event = replace(
        made.event,
        id=f"{_JOB_ID}:9",
        job_id=_JOB_ID,
        definition="resnet",
        trigger=EventTrigger(source="github", identity="1", summary="push of 4b1d8e6 to main in acme/vision by ada"),
        reason=_REASONS[kind],
        attempt=1 if is_before else 2,
        checkpoints=f"s3://acme-models/resnet/{_JOB_ID}/",
        progress=None if is_before else made.event.progress,
    )
    return replace(
        made,
        event=event,
        interruptions=() if is_before else made.interruptions,
        all_interruptions=0 if is_before else made.all_interruptions,
        reason=_REASONS[kind],
        is_test=False,
    )


def main(arguments: Sequence[str]) -> None:
    """Write the page to the path that is the only argument."""
    Path(arguments[0]).write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
