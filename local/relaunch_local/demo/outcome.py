"""What the demo says of itself when it has ended."""

from dataclasses import asdict, dataclass, field
from typing import Any

from relaunch_local.stack.training_cluster import Training


@dataclass(frozen=True)
class JobResult:
    """How an interrupted job ended: from which step it went on, how many steps were taken twice, what was learned."""

    kind: str
    job_id: str
    resumed_step: int
    steps_taken_twice: int
    loss: float
    weights_sha256: str


@dataclass
class Outcome:
    """How the demo ended, after how many seconds what was done, how the jobs ended."""

    speed: float
    training: Training
    result: str = "running"
    problem: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    endings: list[JobResult] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return asdict(self)
