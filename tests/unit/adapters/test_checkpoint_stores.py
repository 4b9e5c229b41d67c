"""Checkpoints are looked for in the store that their URI names."""

import pytest

from fakes.sources import FakeCheckpoints
from relaunch.adapters.checkpoint_stores import CheckpointStores
from relaunch.ports import PermanentError


def test_each_scheme_has_a_store_of_its_own():
    s3 = FakeCheckpoints({"j": "s3://b/p/j/attempt-1/step-1/"})
    oss = FakeCheckpoints({"j": "oss://b/p/j/attempt-1/step-2/"})
    stores = CheckpointStores({"s3": s3, "oss": oss})

    assert stores.newest_complete("s3://b/p/", "j") == "s3://b/p/j/attempt-1/step-1/"
    assert stores.newest_complete("oss://b/p/", "j") == "oss://b/p/j/attempt-1/step-2/"
    assert stores.newest_complete("s3://b/p/", "j", attempt=1) == "s3://b/p/j/attempt-1/step-1/"
    assert stores.newest_complete("s3://b/p/", "j", attempt=2) is None
    assert stores.newest_complete("s3://b/p/", "j", step=9) is None
    assert stores.newest_saved("oss://b/p/", "j") == oss.newest_saved("oss://b/p/", "j")
    assert stores.newest_saved("s3://b/p/", "j") == s3.newest_saved("s3://b/p/", "j")


def test_a_store_that_the_stack_does_not_have_is_refused():
    stores = CheckpointStores({"s3": FakeCheckpoints()})

    for ask in (stores.newest_complete, stores.probe):
        with pytest.raises(PermanentError, match="the stack does not read oss://b/p/: it reads s3://"):
            ask("oss://b/p/", "j")
