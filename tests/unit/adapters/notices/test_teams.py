"""Microsoft Teams."""

from fakes.notice_receivers import ReceiverServices
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
