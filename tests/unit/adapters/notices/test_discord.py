"""Discord."""

from dataclasses import replace

from fakes.notice_receivers import ReceiverServices
from relaunch.adapters.notices.discord import write_content
from unit.adapters.notices.conftest import make_notice, make_receiver


def test_a_notice_mentions_nobody_and_is_no_markdown(services: ReceiverServices) -> None:
    make_receiver(services, "discord").deliver(make_notice(), "")

    message = services.requests[0].document
    assert message["allowed_mentions"] == {"parse": []}
    assert r"\<b\>exit code 1\</b\> & \@everyone \*now\* \[x\]\(y\)" in message["content"]
    assert message["content"].startswith("**resnet\\-1f2e3d4c has failed**\n")
    assert services.requests[0].target == "/api/webhooks/1/secrettoken?wait=true"


def test_the_longest_text_is_within_its_limit() -> None:
    assert len(write_content(replace(make_notice(), reason="*" * 5_000))) <= 2_000


def test_the_page_of_the_job_is_a_link() -> None:
    page = "https://jobs.example.com/resnet-1f2e3d4c"

    assert f"\n{page}\n`relaunch explain" in write_content(replace(make_notice(), page_url=page))
