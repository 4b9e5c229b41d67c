"""Invokes every sample of events/ in a container, and checks its effect: `python -m relaunch_local.sam_local`."""

import argparse
import sys

from relaunch_local.sam_local.isolation import IsolationError, check_machine, run_isolated

NOT_RUN = 2


def main() -> int:
    """Run all samples in namespaces of their own; return only if that is impossible."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.sam_local", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print only the results, as JSON")
    parser.parse_args()
    try:
        check_machine()
    except IsolationError as error:
        print(f"sam-local: {error}", file=sys.stderr)
        return NOT_RUN
    run_isolated([sys.executable, "-m", "relaunch_local.sam_local.inside", *sys.argv[1:]])
    return NOT_RUN


if __name__ == "__main__":
    sys.exit(main())
