"""How many examples property tests try: `HYPOTHESIS_PROFILE=thorough` tries twenty times as many."""

import os

from hypothesis import Phase, settings

# The machine that the tests run on may be slow: no example has a deadline.
settings.register_profile("usual", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=2_000)
# Where errors are planted: few examples, the same each time, and no effort to make the failing one small.
settings.register_profile(
    "mutation",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
