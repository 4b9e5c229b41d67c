"""Slack."""

from dataclasses import replace

from fakes.notice_receivers import CHANNEL, TOKEN, ReceiverServices, Refusal
from relaunch.ports.notices import Delivered
from unit.adapters.notices.conftest import make_notice, make_receiver


def test_the_first_notice_of_a_job_is_a_message_and_the_next_are_in_its_thread(services: ReceiverServices) -> None:
    receiver = make_receiver(services, "token")

    first = receiver.deliver(make_notice(), "")
    assert isinstance(first, Delivered)
    second = receiver.deliver(make_notice(), first.thread)

    root, reply = (each.document for each in services.requests)
    assert first.thread == "1793709042.000001"
    assert second == Delivered(first.thread, "ok")
    assert "thread_ts" not in root
    assert (reply["thread_ts"], reply["reply_broadcast"]) == (first.thread, True)
    assert root["channel"] == CHANNEL
    assert services.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_what_looks_like_markup_is_escaped(services: ReceiverServices) -> None:
    make_receiver(services, "slack").deliver(make_notice(), "")

    document = services.requests[0].document
    assert "&lt;b&gt;exit code 1&lt;/b&gt; &amp; @everyone" in document["text"]
    assert "<" not in document["text"]
    (block,) = document["blocks"]
    (section,) = block["elements"]
    assert block["type"] == "rich_text"
    styled = {each["text"]: each["style"] for each in section["elements"] if "style" in each}
    assert styled.pop("resnet-1f2e3d4c has failed\n") == {"bold": True}
    assert styled == {f"relaunch {each} resnet-1f2e3d4c": {"code": True} for each in ("explain", "logs", "retry")}
    assert any("<b>exit code 1</b> & @everyone *now*" in each["text"] for each in section["elements"])


def test_the_page_of_the_job_is_a_link(services: ReceiverServices) -> None:
    page = "https://jobs.example.com/resnet-1f2e3d4c"
    make_receiver(services, "slack").deliver(replace(make_notice(), page_url=page), "")

    (block,) = services.requests[0].document["blocks"]
    assert {"type": "link", "url": page, "text": "Open the job"} in block["elements"][0]["elements"]


def test_a_thread_whose_first_message_is_gone_begins_again(services: ReceiverServices) -> None:
    services.refusals = [Refusal(200, "", "", '{"ok": false, "error": "thread_not_found"}')]

    outcome = make_receiver(services, "token").deliver(make_notice(), "1.1")

    assert outcome == Delivered("1793709042.000002", "ok")
    assert "thread_ts" not in services.requests[1].document
