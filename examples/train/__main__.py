"""Entry of `python -m train`."""

import sys

from .train import main

sys.exit(main(sys.argv[1:]))
