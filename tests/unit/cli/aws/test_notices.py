"""The receivers of a stack, as its outputs have them."""

from relaunch_cli.aws.notices import open_notices

PAGE = "https://jobs.example.com/{job_id}"


def test_a_notice_that_is_tried_leads_to_the_page_of_its_job_as_others_do() -> None:
    outputs = {"NoticesPath": "/relaunch/relaunch/notices", "JobPageUrl": PAGE}

    found = open_notices(outputs, "relaunch", lambda _: None)

    assert found.maker.page_url == PAGE
    assert open_notices({**outputs, "JobPageUrl": ""}, "relaunch", lambda _: None).maker.page_url == ""
