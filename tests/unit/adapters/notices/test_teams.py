"""Microsoft Teams."""

from dataclasses import replace

from fakes.notice_receivers import ReceiverServices
from relaunch.adapters.notices.teams import write_card
from unit.adapters.notices.conftest import make_notice, make_receiver


def test_a_notice_is_an_adaptive_card_whose_text_is_no_markdown(services: ReceiverServices) -> None:
    make_receiver(services, "teams").deliver(make_notice(), "")

    (attachment,) = services.requests[0].document["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    blocks = attachment["content"]["body"]
    assert {each["type"] for each in blocks} == {"RichTextBlock"}
    runs = [run for each in blocks for run in each["inlines"]]
    assert {each["type"] for each in runs} == {"TextRun"}
    assert runs[0]["text"] == "resnet-1f2e3d4c has failed"
    assert runs[1]["text"] == "<b>exit code 1</b> & @everyone *now* [x](y)"
    assert len(services.requests[0].body) < 28 * 1024
    assert "sig=secretsig" in services.requests[0].target


def test_the_page_of_the_job_is_a_button() -> None:
    page = "https://jobs.example.com/resnet-1f2e3d4c"
    (attachment,) = write_card(replace(make_notice(), page_url=page))["attachments"]

    assert attachment["content"]["actions"] == [{"type": "Action.OpenUrl", "title": "Open the job", "url": page}]
