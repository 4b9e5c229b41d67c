import re
from typing import Any

import pytest

from relaunch_action.job_api import JobStatus
from relaunch_action.summary import summarize_job, summarize_plan

PLAN: dict[str, Any] = {
    "definition": "resnet",
    "revision_arn": "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7",
    "problem": "",
    "rejection": "",
    "offerings": [
        {"offering": "g5.xlarge spot us-east-1a", "price_usd_per_hour": 0.4, "expected_cost_usd": None},
        {"offering": "g6.xlarge on-demand us-east-1b", "price_usd_per_hour": 1.1, "expected_cost_usd": 12.5},
    ],
    "kept": 12,
    "rejections": [{"filter": "price", "rejected": 3}],
    "notices": ["input 'x' was left out"],
}
ATTACK = "<img src=x onerror=alert(1)>\n\n# title | [a](http://a.example) <script>"


def make_job(**changes: Any) -> JobStatus:
    job: dict[str, Any] = {
        "job_id": "resnet-1",
        "state": "FAILED",
        "is_final": True,
        "reason": "exit code 1",
        "revision_arn": "arn",
        "attempt": 2,
        "offering": "g5.xlarge spot",
        "interruptions": 1,
        "failures": 1,
        "cost": "0.25",
    }
    return JobStatus(**{**job, **changes})


def cells(markup: str) -> list[str]:
    return re.findall(r"<t[hd]>(.*?)</t[hd]>", markup)


def test_a_plan_has_its_offerings_and_what_rejected_the_others() -> None:
    markup = summarize_plan(PLAN)

    assert "plan of resnet, nothing was started" in markup
    assert cells(markup)[3:9] == [
        "g5.xlarge spot us-east-1a",
        "0.40",
        "",
        "g6.xlarge on-demand us-east-1b",
        "1.10",
        "12.50",
    ]
    assert cells(markup)[-2:] == ["price", "3"]
    for words in ("12 offerings satisfy it", "&#x27;x&#x27; was left out", "task-definition/trainer:7"):
        assert words in markup


def test_a_plan_says_why_a_job_could_not_run_or_would_wait() -> None:
    assert "It cannot run: no revision" in summarize_plan({**PLAN, "problem": "no revision", "offerings": []})
    assert "It would wait: all too dear" in summarize_plan({**PLAN, "rejection": "all too dear", "offerings": []})


@pytest.mark.parametrize("plan", [{}, {"offerings": None, "notices": "x"}, {"offerings": [5], "rejections": {}}])
def test_a_plan_of_another_form_is_shown_as_far_as_it_is_understood(plan: dict[str, Any]) -> None:
    assert "Task definition: none" in summarize_plan(plan)


def test_a_job_has_its_state_reason_and_cost() -> None:
    markup = summarize_job(make_job())

    assert "job resnet-1" in markup
    told = cells(markup)
    assert dict(zip(told[::2], told[1::2], strict=True))["cost so far (USD)"] == "0.25"
    assert "offering" not in summarize_job(make_job(offering="", attempt=None))


def test_no_text_is_markup() -> None:
    job = summarize_job(make_job(reason=ATTACK, state=ATTACK, job_id=ATTACK))
    plan = summarize_plan({**PLAN, "problem": ATTACK, "notices": [ATTACK], "offerings": [{"offering": ATTACK}]})

    for markup in (job, plan):
        tags = set(re.findall(r"<\s*/?\s*(\w+)", markup))
        assert tags <= {"h3", "p", "table", "tr", "td", "th"}
        # Without a line of its own no text is Markdown: every line begins with one of our elements.
        assert all(line.startswith("<") for line in markup.splitlines())
        assert "\n\n" not in markup
