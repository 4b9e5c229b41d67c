"""`python -m relaunch_local.attack`: try to misuse the application, and count what misbehaves (`make attack`)."""

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relaunch_local.attack import (
    callers,
    clusters,
    command_files,
    corpus,
    cross_origin,
    dashboards,
    definition_files,
    deliveries,
    families,
    manifests,
    messages,
    origins,
    patterns,
    replays,
    roles,
    scopes,
    terminal,
)
from relaunch_local.attack.attempts import Attempt

Surface = Callable[[random.Random, int], Iterator[Attempt]]

SURFACES: Mapping[str, Surface] = {
    "forged signatures": deliveries.forged_signatures,
    "changed bodies": deliveries.changed_bodies,
    "JSON bombs": deliveries.json_bombs,
    "secrets of other repositories": scopes.foreign_secrets,
    "replayed deliveries": replays.replays,
    "origins of workflow_run": origins.workflow_runs,
    "patterns": patterns.hostile_patterns,
    "roles": roles.foreign_resources,
    "foreign task definitions": families.foreign_families,
    "keys and jobs of other callers": callers.other_callers,
    "manifests of checkpoints": manifests.hostile_manifests,
    "messages of queues": messages.queue_messages,
    "definition files": definition_files.definition_files,
    "clusters": clusters.clusters,
    "command files": command_files.command_files,
    "control sequences": terminal.control_sequences,
    "the dashboard and other pages": dashboards.other_pages,
    "values on the dashboard": dashboards.hostile_values,
    "web pages and the local world": cross_origin.web_pages,
}
_SHOWN = 5


@dataclass
class Tally:
    """What came of the attempts on a surface."""

    surface: str
    tried: int = 0
    misbehaved: list[Attempt] = field(default_factory=list)
    seconds: float = 0.0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if anything misbehaved."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.attack", description=__doc__)
    parser.add_argument("--attempts", type=int, default=5_000, help="how many are made where they are drawn")
    parser.add_argument("--seed", type=int, default=1, help="the seed that draws them")
    parser.add_argument("--only", choices=SURFACES, action="append", help="one surface; may be repeated")
    parser.add_argument("--corpus", type=Path, help="a folder whose files are sent to every surface too")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args(words)
    surfaces = {name: SURFACES[name] for name in arguments.only or SURFACES}
    if arguments.corpus:
        if not arguments.corpus.is_dir():
            parser.error(f"{arguments.corpus} is no folder")
        surfaces["corpus"] = partial(corpus.files_of, arguments.corpus)
    # All surfaces import more than a function does, which the collector would look through for each large body.
    gc.freeze()
    tallies = [_run(name, surface, arguments) for name, surface in surfaces.items()]
    _print(tallies, arguments.seed, is_json=arguments.json)
    return int(any(tally.misbehaved for tally in tallies))


def _run(name: str, surface: Surface, arguments: argparse.Namespace) -> Tally:
    tally = Tally(name)
    began = time.monotonic()
    # Reproducible, not a secret.
    dice = random.Random(f"{arguments.seed}/{name}")  # noqa: S311
    for each in surface(dice, arguments.attempts):
        tally.tried += 1
        if each.misbehaviour is not None:
            tally.misbehaved.append(each)
    tally.seconds = time.monotonic() - began
    print(f"{name}: {tally.tried:,} tried, {len(tally.misbehaved):,} misbehaved", file=sys.stderr, flush=True)
    return tally


def _print(tallies: list[Tally], seed: int, *, is_json: bool) -> None:
    if is_json:
        print(json.dumps({"seed": seed, "surfaces": [_to_json(tally) for tally in tallies]}, indent=2))
        return
    console = Console(highlight=False, emoji=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("SURFACE", no_wrap=True)
    for heading in ("TRIED", "MISBEHAVED", "SECONDS"):
        table.add_column(heading, justify="right")
    for tally in tallies:
        style = "bold red" if tally.misbehaved else ""
        misbehaved = Text(f"{len(tally.misbehaved):,}", style=style)
        table.add_row(tally.surface, f"{tally.tried:,}", misbehaved, f"{tally.seconds:.1f}")
    for tally in tallies:
        for each in tally.misbehaved[:_SHOWN]:
            console.print(Text(f"{tally.surface}: {each.what}\n  {each.misbehaviour}"), soft_wrap=True)
    console.print(table)


def _to_json(tally: Tally) -> dict[str, object]:
    misbehaved = [{"what": each.what, "misbehaviour": each.misbehaviour} for each in tally.misbehaved]
    return {"surface": tally.surface, "tried": tally.tried, "misbehaved": misbehaved, "seconds": tally.seconds}


if __name__ == "__main__":
    sys.exit(main())
