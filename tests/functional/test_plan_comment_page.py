"""docs/plan-comment.md: the comment on a pull request, as the step writes it at the fake GitHub.

`python tests/functional/test_plan_comment_page.py` writes the page.
"""

import tempfile
from pathlib import Path

from fakes.pull_request import BASE, FILE, MARKER, MERGE, PullRequest
from fakes.repository import REPOSITORY

PAGE = REPOSITORY / "docs" / "plan-comment.md"
HEAD = """\
# The comment on a pull request

Made by [the step](github-action.md#plans-for-pull-requests) for a pull request that changes, adds and removes
a definition:
`python tests/functional/test_plan_comment_page.py`. Everything below the line is the comment.

---

"""
BEFORE = """\
jobs:
  resnet:
    task_definition: trainer
    accelerator: {gpu: {count: 1, memory: 16GiB}}
    max_runtime: 12h
  bert:
    task_definition: trainer
    accelerator: {gpu: {count: 1, memory: 16GiB}}
"""
AFTER = """\
jobs:
  resnet:
    task_definition: trainer
    accelerator: {gpu: {count: 1, memory: 20GiB}}
    max_runtime: 24h
    max_price_per_hour: 4.00
    concurrency: {group: "{branch}"}
  gpt:
    task_definition: trainer
    accelerator: {gpu: {count: 9, memory: 200GiB}}
"""


def render_page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        pull = PullRequest(Path(folder))
        pull.repository.files = {(MERGE, FILE): AFTER, (BASE, FILE): BEFORE}
        pull.run()
    (body,) = pull.bodies
    return HEAD + body.removeprefix(f"{MARKER}\n")


def test_the_page_is_what_the_step_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page()


def test_it_says_first_what_would_become_of_which_definition() -> None:
    _, _, comment = render_page().partition("---\n\n")
    title, counts, *_ = comment.splitlines()

    assert title == "<h3>Relaunch: what <code>relaunch.yaml</code> would run</h3>"
    assert counts == (
        "<p>Definitions of jobs: 1 added, 1 changed, 1 removed. <b>Jobs of <code>gpt</code> cannot run.</b></p>"
    )


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
