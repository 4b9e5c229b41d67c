"""The behaviour of DefinitionStore: the fake and the adapter."""

from datetime import timedelta

import pytest

from contracts.conftest import Stores
from fakes.builders import make_definition, make_job
from relaunch.core.definitions.accelerator import MeasuredOn
from relaunch.core.definitions.definition import (
    GithubTrigger,
    ImageTrigger,
    ImageWait,
    InputRule,
    S3Trigger,
    SnsTrigger,
    TriggerSource,
)
from relaunch.core.definitions.ownership import Owner
from relaunch.ports import DefinitionStore, StaleWriteError

PUSH = GithubTrigger("acme/vision", "push", branches=("main", "release/**"), wait_for_image=ImageWait("trainer"))
UPLOAD = S3Trigger("acme-datasets", prefix="images/", suffix=".manifest")
IMAGE = ImageTrigger("trainer", tag="{sha}")
TOPIC = "arn:aws:sns:eu-central-1:111122223333:features"
MESSAGE = SnsTrigger(TOPIC, (("seed", "message.seed"),))
ADA = Owner("github.com/acme/vision", "relaunch.yaml", "arn:aws:iam::111122223333:user/ada")
BOB = Owner("", "other.yaml", "arn:aws:iam::111122223333:user/bob")


@pytest.fixture
def store(stores: Stores) -> DefinitionStore:
    return stores.definitions


def found(store: DefinitionStore, source: TriggerSource, name: str) -> list[str]:
    return [definition.name for definition in store.find_definitions(source, name)]


def test_a_definition_is_loaded_as_it_was_saved(store: DefinitionStore) -> None:
    definition = make_definition(
        triggers=(PUSH, UPLOAD, IMAGE, MESSAGE),
        inputs={"learning_rate": InputRule("[0-9.]+", "0.1"), "seed": InputRule("[0-9]+")},
        estimated_duration=timedelta(hours=20),
        estimated_on=MeasuredOn("A10G", 4),
    )
    store.save_definition(definition)
    assert store.load_definition("resnet") == definition
    assert store.load_definition("res") is None


@pytest.mark.parametrize("callers", [(), ("invoke",)])
def test_its_callers_are_kept_also_in_its_jobs(stores: Stores, callers: tuple[str, ...]) -> None:
    definition = make_definition(callers=callers)
    stores.definitions.save_definition(definition)
    stores.jobs.create_job(make_job(definition=definition), [])

    job = stores.jobs.load_job(make_job().job_id)
    assert job is not None
    assert stores.definitions.load_definition("resnet") == job.definition == definition


def test_all_definitions_are_listed_by_name(store: DefinitionStore) -> None:
    assert store.list_definitions() == []
    for name in ("resnet", "bert", "gpt"):
        store.save_definition(make_definition(name=name))
    assert [definition.name for definition in store.list_definitions()] == ["bert", "gpt", "resnet"]


def test_an_event_finds_the_definitions_that_watch_its_origin(store: DefinitionStore) -> None:
    store.save_definition(make_definition(name="a", triggers=(PUSH, UPLOAD)))
    store.save_definition(make_definition(name="c", triggers=(MESSAGE,)))
    store.save_definition(make_definition(name="b", triggers=(PUSH, IMAGE)))
    assert found(store, TriggerSource.GITHUB, "acme/vision") == ["a", "b"]
    assert found(store, TriggerSource.S3, "acme-datasets") == ["a"]
    assert found(store, TriggerSource.IMAGE, "trainer") == ["b"]
    assert found(store, TriggerSource.SNS, TOPIC) == ["c"]
    assert found(store, TriggerSource.SNS, f"{TOPIC}-b") == []
    assert found(store, TriggerSource.IMAGE, "acme/vision") == []
    assert found(store, TriggerSource.S3, "acme") == []


def test_an_event_finds_the_whole_definition(store: DefinitionStore) -> None:
    definition = make_definition(triggers=(PUSH,))
    store.save_definition(definition)
    assert store.find_definitions(TriggerSource.GITHUB, "acme/vision") == [definition]


def test_a_repository_is_found_whatever_the_case_it_was_written_in(store: DefinitionStore) -> None:
    store.save_definition(make_definition(triggers=(GithubTrigger("Acme/Vision", "push"),)))
    assert found(store, TriggerSource.GITHUB, "acme/vision") == ["resnet"]


def test_a_definition_with_two_triggers_on_one_origin_is_found_once(store: DefinitionStore) -> None:
    store.save_definition(make_definition(triggers=(PUSH, GithubTrigger("acme/vision", "release"))))
    assert found(store, TriggerSource.GITHUB, "acme/vision") == ["resnet"]


def test_a_replaced_definition_is_found_by_its_new_triggers_alone_and_in_its_new_form(store: DefinitionStore) -> None:
    store.save_definition(make_definition(triggers=(PUSH, UPLOAD)))
    replaced = make_definition(triggers=(UPLOAD, IMAGE), max_failures=7)
    store.save_definition(replaced)
    assert found(store, TriggerSource.GITHUB, "acme/vision") == []
    assert store.find_definitions(TriggerSource.S3, "acme-datasets") == [replaced]
    assert store.find_definitions(TriggerSource.IMAGE, "trainer") == [replaced]
    assert store.list_definitions() == [replaced]


def test_a_deleted_definition_is_gone_with_its_triggers(store: DefinitionStore) -> None:
    store.save_definition(make_definition(name="a", triggers=(PUSH,)))
    store.save_definition(make_definition(name="b", triggers=(PUSH,)))
    assert store.delete_definition("a") is True
    assert store.load_definition("a") is None
    assert found(store, TriggerSource.GITHUB, "acme/vision") == ["b"]
    assert store.delete_definition("a") is False


def test_a_definition_without_triggers_can_be_saved_and_deleted(store: DefinitionStore) -> None:
    store.save_definition(make_definition(triggers=()))
    assert store.load_definition("resnet") == make_definition(triggers=())
    assert store.delete_definition("resnet") is True


def version_of(store: DefinitionStore, name: str = "resnet") -> int:
    registered = store.load_registered(name)
    return registered.version if registered else 0


def test_a_definition_is_registered_with_its_owner(store: DefinitionStore) -> None:
    store.save_definition(make_definition(name="b"), BOB)
    store.save_definition(make_definition(name="a"), ADA)
    store.save_definition(make_definition(name="c"))
    registered = store.list_registered()
    assert [(each.definition.name, each.owner) for each in registered] == [("a", ADA), ("b", BOB), ("c", None)]
    assert [store.load_registered(each.definition.name) for each in registered] == registered
    assert store.load_registered("d") is None


def test_a_replaced_definition_has_the_owner_of_the_last_registration(store: DefinitionStore) -> None:
    for owner in (ADA, BOB, None):
        store.save_definition(make_definition(), owner)
        (registered,) = store.list_registered()
        assert registered.owner == owner


def test_what_was_replaced_since_it_was_read_is_left_as_it_is(store: DefinitionStore) -> None:
    store.save_definition(make_definition(triggers=(PUSH,)), ADA)
    read = version_of(store)
    newer = make_definition(triggers=(UPLOAD,), max_failures=7)
    store.save_definition(newer, BOB, version=read)

    with pytest.raises(StaleWriteError, match="resnet was changed by others"):
        store.save_definition(make_definition(triggers=(IMAGE,)), ADA, version=read)
    with pytest.raises(StaleWriteError, match="resnet was changed by others"):
        store.delete_definition("resnet", version=read)

    (registered,) = store.list_registered()
    assert (registered.definition, registered.owner) == (newer, BOB)
    assert found(store, TriggerSource.S3, "acme-datasets") == ["resnet"]
    assert found(store, TriggerSource.IMAGE, "trainer") == []


def test_what_was_created_since_it_was_looked_for_is_left_as_it_is(store: DefinitionStore) -> None:
    store.save_definition(make_definition(), ADA, version=0)
    with pytest.raises(StaleWriteError):
        store.save_definition(make_definition(max_failures=7), BOB, version=0)
    assert store.list_definitions() == [make_definition()]


def test_what_was_removed_since_it_was_read_is_not_registered_again_by_a_replacement(store: DefinitionStore) -> None:
    store.save_definition(make_definition(), ADA)
    read = version_of(store)
    assert store.delete_definition("resnet", version=read) is True
    assert store.delete_definition("resnet", version=read) is False
    with pytest.raises(StaleWriteError):
        store.save_definition(make_definition(), ADA, version=read)
    assert store.list_definitions() == []


def test_what_was_removed_and_registered_anew_is_another_version(store: DefinitionStore) -> None:
    store.save_definition(make_definition(), ADA)
    read = version_of(store)
    store.delete_definition("resnet")
    store.save_definition(make_definition(max_failures=7), BOB)

    assert version_of(store) != read
    with pytest.raises(StaleWriteError):
        store.delete_definition("resnet", version=read)
    assert store.list_definitions() == [make_definition(max_failures=7)]
