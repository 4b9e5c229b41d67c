"""`python run_seeds.py`: run seeds with the modules that REPLACED_MODULES names taken from other files.

Standard input has a JSON object: `runs`, the seeds in their order, each with the fingerprint of its run without a
mutant; `is_first_enough`, whether to end with the first violation that names a harm, or after some seeds in which
something raises and nobody is harmed. The output is a JSON object: `changed`, the seeds whose runs went another way,
and `found`, a violation of each seed that had one: what names a harm before an exception.
"""

import json
import signal
import sys
import warnings
from typing import Any

import replaced_modules  # noqa: F401 - before any module that may be replaced

# A seed takes up to three seconds. SIGALRM ends this process: whoever started it takes that for a finding.
SEED_SECONDS = 90
# Seeds in which something raises, and nobody is harmed by it.
_EXCEPTIONS = 8


def main() -> None:
    """Run the seeds and print what was found."""
    request = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    runs = {int(seed): expected for seed, expected in request["runs"].items()}
    print(json.dumps(run(runs, is_first_enough=request["is_first_enough"])))


def run(runs: dict[int, str], *, is_first_enough: bool) -> dict[str, Any]:
    """Run the seeds; whatever is raised is a finding, and if it is raised by an import, one of the first seed."""
    changed: list[int] = []
    found: dict[int, str] = {}
    harmed = False
    for seed, expected in runs.items():
        signal.alarm(SEED_SECONDS)
        try:
            # They import the replaced modules.
            from fingerprint import fingerprint  # noqa: PLC0415

            from relaunch_local.simulation.run import run_seed  # noqa: PLC0415

            result = run_seed(seed)
        except Exception as error:  # noqa: BLE001 - a mutant may raise anything, anywhere
            found[seed] = f"{type(error).__name__}: {error}"[:200]
        else:
            if result.violations:
                harm = [each for each in result.violations if "no unhandled exception" not in each]
                harmed = bool(harm)
                found[seed] = [*harm, *result.violations][0]
            if fingerprint(result) != expected:
                changed.append(seed)
        if is_first_enough and (harmed or len(found) == _EXCEPTIONS):
            break
    return {"changed": changed, "found": found}


if __name__ == "__main__":
    main()
