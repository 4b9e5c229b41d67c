"""Links of jobs to pages elsewhere."""

import pytest

from relaunch.core.definitions.links import fill_links, find_problem

RUN = "https://wandb.ai/acme/vision/runs/{job_id}-{attempt}?group={definition}#charts"
NO_HOST = "names no host behind https://, as in https://wandb.ai/acme/vision/runs/{job_id}"
QUOTED = "has a character that a URL has quoted: a blank is %20"
BRACES = "has braces that stand for nothing: there is {job_id}, {attempt}, {definition}"


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
        ("https://", NO_HOST),
        ("https:///runs", NO_HOST),
        ("https://{job_id}.acme.example/", NO_HOST),
        ("https://user:secret@acme.example/", NO_HOST),
        ("https://acme.example:port/", NO_HOST),
        ("https://acme.example/a b", QUOTED),
        ("https://acme.example/\x1b[2J", QUOTED),
        ('https://acme.example/"><script>', QUOTED),
        ("https://acme.example/\u202e", QUOTED),
        ("https://acme.example/{sha}", BRACES),
        ("https://acme.example/{}", BRACES),
        ("https://acme.example/}{job_id}", BRACES),
        ("https://acme.example/{job_id}{", BRACES),
        ("https://acme.example/" + "a" * 479, ""),
        ("https://acme.example/" + "a" * 480, "has more than 500 characters"),
    ],
)
def test_what_is_no_link_is_refused_with_the_reason(template, problem):
    assert find_problem(template) == problem
