"""Links of jobs to pages elsewhere."""

import pytest

from relaunch.core.definitions.links import fill_links, find_problem

RUN = "https://wandb.ai/acme/vision/runs/{job_id}-{attempt}?group={definition}#charts"


def test_the_placeholders_of_a_job_are_filled_in():
    links = {"W&B": RUN, "MLflow": "https://mlflow.acme.example:8443/#/runs/{job_id}"}

    filled = fill_links(links, definition="resnet", job_id="resnet-1f2e", attempt=2)

    assert [find_problem(each) for each in links.values()] == ["", ""]
    assert filled == {
        "W&B": "https://wandb.ai/acme/vision/runs/resnet-1f2e-2?group=resnet#charts",
        "MLflow": "https://mlflow.acme.example:8443/#/runs/resnet-1f2e",
    }
    assert list(fill_links(links, definition="resnet", job_id="resnet-1f2e", attempt=None)) == ["MLflow"]


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("http://wandb.ai/{job_id}", "does not begin with https://"),
        ("javascript:alert(1)", "does not begin with https://"),
        ("https://", "names no host"),
        ("https:///runs", "names no host"),
        ("https://{job_id}.acme.example/", "names no host"),
        ("https://user:secret@acme.example/", "names no host"),
        ("https://acme.example:port/", "names no host"),
        ("https://acme.example/a b", "a blank is %20"),
        ("https://acme.example/\x1b[2J", "a blank is %20"),
        ('https://acme.example/"><script>', "a blank is %20"),
        ("https://acme.example/\u202e", "a blank is %20"),
        ("https://acme.example/{sha}", "stand for nothing: there is {job_id}, {attempt}, {definition}"),
        ("https://acme.example/{}", "stand for nothing"),
        ("https://acme.example/}{job_id}", "stand for nothing"),
        ("https://acme.example/" + "a" * 500, "has more than 500 characters"),
    ],
)
def test_what_is_no_link_is_refused_with_the_reason(template, problem):
    assert problem in find_problem(template)
