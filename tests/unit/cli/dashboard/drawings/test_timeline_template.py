"""The templates of the drawings: what is in them, what cannot be, and their colours."""

import re
from html.parser import HTMLParser

import pytest

from fakes.builders import make_job
from fakes.job_histories import DASHBOARD, after, checkpoint, entry, environment, make_history, ran, render
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import SeriesPoint
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.jobs.training import TrainingProgress
from relaunch_cli.dashboard.drawings.drawing import MarkKind, SpanKind, merge
from relaunch_cli.dashboard.drawings.loss_curve import make_loss_curve
from relaunch_cli.dashboard.drawings.timeline import make_timeline
from relaunch_cli.dashboard.export import export_page

HOSTILE = "</text></title><script>alert('&\"1')</script><img src=x onerror=alert(2)>"
CSS = (DASHBOARD / "assets" / "drawings.css").read_text("utf-8")
TRAINING = TrainingProgress(
    series=tuple(SeriesPoint(step, after(step).timestamp(), 2.0 / step) for step in (10, 20, 45)), total_steps=100
)


class _Elements(HTMLParser):
    """Notes the elements of a page that are open, and all with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.all.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.all.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def draw(text: str = "said"):
    """Return both drawings of a job whose texts are all this one."""
    attempts = [
        ran(1, 0, 30, warned_at=after(28), stop=Stop(StopKind.USER_ERROR, after(30), stopped_reason=text)),
        ran(2, 40, None, resume_uri=checkpoint(20), instance_id=text),
    ]
    timeline = (
        entry(0, JobState.WAITING, "accepted", detail=text),
        entry(0, JobState.LAUNCHING, "launching", 1, text),
        entry(1, JobState.RUNNING, "running", 1, text),
        entry(30, JobState.WAITING, f"stopped: {text}", 1, text),
        entry(31, JobState.WAITING, "machine claimed", 1, text),
        entry(32, JobState.WAITING, "machine lost", 1, text),
        entry(40, JobState.LAUNCHING, "launching", 2, text),
        entry(41, JobState.RUNNING, "running", 2, text),
    )
    history = make_history(attempts, timeline, state=JobState.RUNNING)
    saved = SavedCheckpoint(checkpoint(45, 2), 45, 2, after(46))
    timeline = make_timeline(history, (), (), TRAINING, after(80), saved)
    curve = make_loss_curve(history, TRAINING, saved)
    return render("timeline(t)", t=timeline) + render("loss_curve(c)", c=curve)


def test_what_others_wrote_is_text_wherever_it_stands():
    page = draw(HOSTILE)

    elements = {tag for tag, _ in _Elements(page).all}
    assert "&lt;script&gt;" in page
    assert "<script" not in page.lower()
    assert "<img" not in page.lower()
    assert elements == {tag for tag, _ in _Elements(draw()).all}


def test_nothing_is_in_the_page_that_its_policy_does_not_allow():
    elements = _Elements(draw())

    assert elements.open == []
    for tag, attributes in elements.all:
        assert tag not in {"script", "style", "link", "img"}
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        assert all("url(" not in (value or "") or value.startswith("url(#") for value in attributes.values())


def test_every_pattern_that_is_named_is_there_once():
    page = draw()

    named = set(re.findall(r"url\(#([\w-]+)\)", page))
    ids = re.findall(r' id="([\w-]+)"', page)
    assert named == {"timeline-failed-start", "timeline-booting", "timeline-saving", "timeline-lost"}
    assert named <= set(ids)
    assert len(ids) == len(set(ids))


def test_each_row_is_an_image_with_its_words_and_all_of_it_is_in_a_table():
    page = draw()
    images = [attributes for tag, attributes in _Elements(page).all if tag == "svg" and attributes.get("role") == "img"]

    # The job, an attempt, a try, an attempt, and the curve.
    assert len(images) == 5
    assert "<title>Attempt 1: g5.xlarge spot us-east-1a; failed (user-error) after 27m00s of training;" in page
    assert "<summary>as a table</summary>" in page
    table = page[page.index("<details") :]
    for words in (
        "interruption notice",
        "lost work: attempt 2 went on from step 20",
        "checkpoint of step 45",
        "goes on",
    ):
        assert words in table
    assert '<time datetime="2026-03-14T09:56:53Z">2026-03-14 09:56:53</time>' in table


def test_the_drawings_can_be_exported():
    page = export_page(draw("see https://console.example/home"), [CSS], "a job")

    assert "://" not in page
    assert re.findall(r"\b(?:src|href)\s*=|url\((?!#)|@import", page) == []
    assert page.count("<style>") == 1


def test_a_job_that_waits_is_one_row_and_a_long_one_has_its_axis_below_too():
    waiting = make_job(waiting=Waiting(WaitReason.CAPACITY, after(0), HOSTILE))
    few = make_timeline(make_history((), job=waiting), (), (), TrainingProgress(), after(60))
    attempts = [ran(number, number * 100, number * 100 + 80) for number in range(1, 20)]
    many = make_timeline(make_history(attempts), (), (), TrainingProgress(), after(2_000))

    assert render("timeline(t)", t=few).count("row-axis") == 1
    assert render("timeline(t)", t=many).count("row-axis") == 2


def test_a_row_with_many_spans_draws_none_of_them_wider_than_it_is():
    attempts = [ran(number, number * 100, number * 100 + 80) for number in range(1, 301)]
    timeline = make_timeline(make_history(attempts), (), (), TrainingProgress(), after(30_500))

    job, rest, *_, newest = timeline.rows
    page = environment().get_template("timeline.html").module

    assert (rest.is_dense, newest.is_dense) == (True, False)
    assert "hairline" not in page.row(rest, timeline)
    assert "hairline" in page.row(newest, timeline)
    assert len(render("timeline(t)", t=timeline)) < 700_000
    assert job.name == "Job"


def test_a_span_of_less_than_two_pixels_is_two_and_its_text_has_its_own_times():
    second = make_timeline(
        make_history([ran(1, 0, 1 + 1 / 60), ran(2, 600, None)]), (), (), TrainingProgress(), after(999)
    )

    training = second.rows[1].spans[1]
    assert (training.width, training.is_hairline) == (0.0, True)
    assert 'class="hairline narrow-training"' in render("timeline(t)", t=second)
    assert training.tooltip(after(999)) == (
        f"training on {training.title.rpartition(' ')[2]}\n14 Mar 09:27:53 to 14 Mar 09:27:54 UTC, 1s"
    )


def test_narrow_neighbours_of_a_kind_are_one_and_wide_ones_keep_their_labels():
    attempts = [ran(number, number, number + 1) for number in range(1, 8)]
    wide = (entry(0, JobState.WAITING, "waiting for image"), entry(400, JobState.WAITING, "waiting for capacity"))
    timeline = make_timeline(make_history(attempts, wide), (), (), TrainingProgress(), after(1_000))

    waits = timeline.rows[0].drawn
    together = merge(tuple(span for row in timeline.rows[1:] for span in row.spans if span.kind is SpanKind.BOOTING))

    assert [(each.label, each.width) for each in waits] == [
        ("waits for its image", 400.0),
        ("waits for capacity", 600.0),
    ]
    assert [(each.x, each.width) for each in together] == [(1.0, 7.0)]
    assert together[0].title.count("\n") == 6


def _colours(scheme: str) -> dict[str, str]:
    block = re.findall(r"\.drawing \{([^}]*)\}", CSS)[0 if scheme == "light" else 1]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def _luminance(colour: str) -> float:
    parts = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_drawn_has_three_to_one_on_its_ground_and_text_more(scheme):
    colours = _colours(scheme)
    drawn = set(colours) - {"ground", "line", "on-training"}

    assert {
        each: contrast(colours[each], colours["ground"])
        for each in drawn
        if contrast(colours[each], colours["ground"]) < 3
    } == {}
    assert contrast(colours["ink"], colours["ground"]) >= 7
    assert contrast(colours["ink-soft"], colours["ground"]) >= 4.5
    assert contrast(colours["on-training"], colours["training"]) >= 4.5


def test_light_and_dark_have_the_same_colours_and_each_kind_has_its_class():
    assert set(_colours("light")) == set(_colours("dark"))
    for kind in SpanKind:
        assert f".span-{kind}" in CSS
        assert f".narrow-{kind}" in CSS
    assert {f"mark-{kind}" for kind in MarkKind} >= set(re.findall(r"\.(mark-[a-z]+) ", CSS))
