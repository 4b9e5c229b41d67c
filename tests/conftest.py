"""How many examples property tests try: `HYPOTHESIS_PROFILE=thorough` tries twenty times as many."""

import os

from hypothesis import settings

# The machine that the tests run on may be slow: no example has a deadline.
settings.register_profile("usual", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
