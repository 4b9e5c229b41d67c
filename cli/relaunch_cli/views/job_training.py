"""How far a training is: lines of `show` and `explain`."""

from datetime import datetime

from rich.text import Text

from relaunch.core.definitions.links import fill_links
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.training import TrainingProgress
from relaunch.core.lifecycle.stalls import describe_stall
from relaunch_cli.job_checkpoints import JobCheckpoints
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_cost, format_duration, format_rate, format_timestamp
from relaunch_cli.views.job_checkpoints import checkpoint_rows

_SHOWN_METRICS = 6


def saved_rows(job: Job, saved: JobCheckpoints, training: TrainingProgress, now: datetime) -> list[tuple[str, Text]]:
    """Return the names and values of lines: how far a job is, what it has saved and where, and its pages elsewhere."""
    links = [(name, Text(link, no_wrap=True)) for name, link in links_of(job).items()]
    return [*training_rows(job, training, now), *checkpoint_rows(job, saved, now), *links]


def links_of(job: Job) -> dict[str, str]:
    """Return the links of a job that its definition has, by name."""
    attempt = job.attempt.number if job.attempt is not None else None
    return fill_links(job.definition.links, definition=job.definition.name, job_id=job.job_id, attempt=attempt)


def training_rows(job: Job, training: TrainingProgress, now: datetime) -> list[tuple[str, Text]]:
    """Return the names and values of lines about a task that runs; none of one that does not."""
    if job.state is not JobState.RUNNING:
        return []
    rows = [
        ("Progress", _progress(training, now)),
        ("Rate", _rate(training)),
        ("Done", format_timestamp(training.finishes_at, now) if training.finishes_at else ""),
        ("At risk", _at_risk(training)),
        ("Stalled", describe_stall(job)),
    ]
    return [(name, Text(one_line(text))) for name, text in rows if text]


def _progress(training: TrainingProgress, now: datetime) -> str:
    if training.step is None or training.at is None:
        return ""
    of_all = (
        f" of {training.total_steps:,} ({training.step / training.total_steps:.0%})" if training.total_steps else ""
    )
    loss = [] if training.loss is None else [("loss", training.loss)]
    numbers = [f"{name} {value:.6g}" for name, value in (*loss, *list(training.metrics.items())[:_SHOWN_METRICS])]
    return ", ".join((f"step {training.step:,}{of_all}", *numbers, f"at {format_timestamp(training.at, now)}"))


def _rate(training: TrainingProgress) -> str:
    rate = training.steps_per_second
    if rate is None:
        return ""
    return f"{format_rate(rate)}, by {training.rests_on}"


def _at_risk(training: TrainingProgress) -> str:
    if training.at_risk is None:
        return ""
    usd = training.at_risk.usd
    cost = f", {format_cost(usd)}" if usd is not None and usd > 0 else ""
    return f"{format_duration(training.at_risk.time)} of work{cost}, which no checkpoint has"
