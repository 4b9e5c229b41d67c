import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from relaunch_local.stack.shared_layers import FOLDERS_VARIABLE, SharedLayers, share_layers


def archive(text: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        file.writestr("python/module.py", text)
    return written.getvalue()


CONTENTS = {"ours:1": archive("ours"), "theirs:1": archive("theirs"), "same:7": archive("ours"), "empty:1": None}


class Environment:
    """An execution environment, as MiniStack has them."""

    def __init__(self, *layers: str) -> None:
        self.config: Mapping[str, Any] = {"Layers": list(layers), "Environment": {"Variables": {"STACK": "relaunch"}}}
        self.spawned_with: Mapping[str, Any] = {}

    def _spawn(self) -> None:
        self.spawned_with = self.config
        if self.config["Environment"]["Variables"]["STACK"] == "broken":
            raise RuntimeError("exited immediately")

    def found(self) -> list[Path]:
        return [
            Path(each) for each in self.spawned_with["Environment"]["Variables"][FOLDERS_VARIABLE].split(os.pathsep)
        ]


@pytest.fixture
def environment(tmp_path: Path) -> type[Environment]:
    class Sharing(Environment):
        pass

    share_layers(Sharing, SharedLayers(tmp_path, CONTENTS.get))
    return Sharing


def test_environments_find_their_layers_in_their_order_and_unpack_none(environment: type[Environment]) -> None:
    one = environment("theirs:1", "empty:1", "ours:1")
    one._spawn()

    assert [(each / "python" / "module.py").read_text() for each in one.found()] == ["theirs", "ours"]
    assert one.spawned_with["Layers"] == []
    assert one.spawned_with["Environment"]["Variables"]["STACK"] == "relaunch"


def test_the_same_content_is_unpacked_once(environment: type[Environment]) -> None:
    one, other = environment("ours:1"), environment("same:7")
    one._spawn()
    (unpacked,) = one.found()
    (unpacked / "python" / "module.py").write_text("unpacked before")
    other._spawn()

    assert other.found() == [unpacked]
    assert (unpacked / "python" / "module.py").read_text() == "unpacked before"


def test_what_is_no_archive_is_no_layer_the_next_time_either(tmp_path: Path) -> None:
    layers = SharedLayers(tmp_path, {"ours:1": b"no archive"}.get)
    for _ in range(2):
        with pytest.raises(zipfile.BadZipFile):
            layers.folders_of(["ours:1"])


def test_the_function_is_configured_as_before_also_where_it_did_not_start(environment: type[Environment]) -> None:
    sound, broken = environment("ours:1"), environment("ours:1")
    broken.config["Environment"]["Variables"]["STACK"] = "broken"
    sound._spawn()
    with pytest.raises(RuntimeError, match="exited immediately"):
        broken._spawn()

    assert sound.config["Layers"] == broken.config["Layers"] == ["ours:1"]
    assert FOLDERS_VARIABLE not in sound.config["Environment"]["Variables"]


def test_without_layers_nothing_is_told(environment: type[Environment]) -> None:
    one = environment()
    one._spawn()

    assert one.spawned_with == one.config
