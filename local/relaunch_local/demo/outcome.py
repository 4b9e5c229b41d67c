"""The outcome of the demo, which `--json` prints."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from relaunch_local.stack.training_cluster import Training


@dataclass(frozen=True)
class JobResult:
    """The result of an interrupted job: the step it resumed from, the steps taken twice, the trained weights."""

    kind: str
    job_id: str
    resumed_step: int
    steps_taken_twice: int
    loss: float
    weights_sha256: str


@dataclass(frozen=True)
class RankResult:
    """What a rank ends with: its loss, as Python writes every bit of it, and the digest of its weights."""

    rank: int
    loss: str
    weights_sha256: str


@dataclass(frozen=True)
class GangResult(JobResult):
    """That of a job over several machines: what its ranks ended with, and those of one that nobody interrupted."""

    ranks: Sequence[RankResult] = ()
    uninterrupted: Sequence[RankResult] = ()


@dataclass
class Outcome:
    """The result of the demo, when it reached what (in seconds), and the results of its jobs."""

    speed: float
    training: Training
    target: str = "ecs"
    nodes: int = 1
    """How many machines the training has."""
    result: str = "running"
    problem: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    endings: list[JobResult] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return asdict(self)
