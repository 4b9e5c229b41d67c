"""`python -m relaunch_local.simulation.load`."""

import sys

from relaunch_local.simulation.garbage import collect_rarely
from relaunch_local.simulation.load.run import main

if __name__ == "__main__":
    collect_rarely()
    sys.exit(main())
