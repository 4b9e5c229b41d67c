from relaunch.core.notices.page import page_of


def test_the_address_of_a_page_has_the_job_s_id_in_it() -> None:
    assert page_of("https://jobs.example.com/{job_id}?tab=log", "resnet-ab12") == (
        "https://jobs.example.com/resnet-ab12?tab=log"
    )


def test_what_an_address_reserves_is_escaped() -> None:
    assert page_of("https://jobs.example.com/{job_id}", "a/b?é") == "https://jobs.example.com/a%2Fb%3F%C3%A9"
