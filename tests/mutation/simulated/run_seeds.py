"""`python run_seeds.py`: run seeds with the modules that REPLACED_MODULES names taken from other files.

Standard input has a JSON object: `runs`, the seeds in their order, each with the fingerprint of its run without a
mutant; `is_first_enough`, whether to end with the first violation that names a harm, or after some seeds in which
something raises and nobody is harmed; `quiet`, seeds that are then run without faults, until one names a harm: where a
function raises whenever it is called, a job that never ends says what it costs, and a seed with faults takes too long
to come to it. The output is a JSON object: `changed`, the seeds whose runs went another way, and `found`, a violation
of each seed that had one: what names a harm before an exception, and last the one that counts.

`python run_seeds.py SEED...` prints those of the seeds that violate nothing without faults and without a mutant.
"""

import gc
import json
import signal
import sys
import warnings
from datetime import timedelta
from typing import Any

import replaced_modules  # noqa: F401 - before any module that may be replaced

# Without a mutant a seed takes up to eight seconds of a processor; it is not measured by the clock, for a process may
# have to wait for its processor.
SEED_SECONDS = 40.0
# Seeds in which something raises, and nobody is harmed by it.
_EXCEPTIONS = 8
# How long after the last event every job has to end in the seeds without faults.
_QUIET_LIMIT = timedelta(hours=2)


class OutOfTimeError(BaseException):
    """A seed has used its time; no function of the application may catch this."""


def main() -> None:
    """Run the seeds and print what was found."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, _end_seed)
    if len(sys.argv) > 1:
        print(json.dumps([seed for seed in map(int, sys.argv[1:]) if run_one(seed, is_quiet=True)[0] is None]))
        return
    request = json.load(sys.stdin)
    runs = {int(seed): expected for seed, expected in request["runs"].items()}
    print(json.dumps(run(runs, request["quiet"], is_first_enough=request["is_first_enough"])))


def _end_seed(_signal: int, _frame: object) -> None:
    raise OutOfTimeError


def run(runs: dict[int, str], quiet: list[int], *, is_first_enough: bool) -> dict[str, Any]:
    """Run the seeds; whatever is raised is a finding, and if it is raised by an import, one of the first seed."""
    changed: list[int] = []
    found: dict[int, str] = {}
    is_harmed = False
    for seed, expected in runs.items():
        finding, fingerprint = run_one(seed, is_quiet=False)
        if fingerprint != expected:
            changed.append(seed)
        if finding is not None:
            found[seed] = finding
            is_harmed = names_harm(finding)
        if is_first_enough and (is_harmed or len(found) == _EXCEPTIONS):
            break
    if found and not is_harmed:
        for seed in quiet:
            finding, _ = run_one(seed, is_quiet=True)
            if finding is not None and names_harm(finding):
                # The last one found is what counts.
                found.pop(seed, None)
                found[seed] = finding
                break
    return {"changed": changed, "found": found}


def run_one(seed: int, *, is_quiet: bool) -> tuple[str | None, str | None]:
    """Return the violation that says most of a seed, None if there is none, and the fingerprint of its run.

    What was violated before a run broke off counts, too.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, SEED_SECONDS, 1.0)
    violations: list[str] = []
    print_of_run = None
    try:
        # They import the replaced modules.
        from fingerprint import fingerprint  # noqa: PLC0415

        from relaunch_local.simulation import Options  # noqa: PLC0415
        from relaunch_local.simulation.run import prepare_seed  # noqa: PLC0415

        run = prepare_seed(seed, Options(without_faults=True, calm_limit=_QUIET_LIMIT) if is_quiet else None)
        violations = run.account.invariants.violations
        print_of_run = fingerprint(run.run())
        found = None
    except OutOfTimeError:
        found = f"it takes more than {SEED_SECONDS:.0f} s"
    except Exception as error:  # noqa: BLE001 - a mutant may raise anything, anywhere
        found = f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    harm = (each for each in violations if names_harm(each))
    return next(harm, found or next(iter(violations), None)), print_of_run


def names_harm(finding: str) -> bool:
    """Tell whether an invariant says what was harmed, and not that a function or the simulation itself raised."""
    is_violation = finding[:2].isdecimal() and finding[2:3] == "-"
    return is_violation and "no unhandled exception" not in finding


if __name__ == "__main__":
    # As simulation/garbage.py, which may not be imported here: a mutant may break the import of anything.
    gc.set_threshold(50_000, 20, 50)
    main()
