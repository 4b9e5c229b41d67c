"""Unpacks each layer once for all execution environments, which only read it: MiniStack unpacks it for each.

That is two thousand files for every environment, and a quarter of its start, in the emulator's one process.
"""

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Any

FOLDERS_VARIABLE = "_LAMBDA_LAYERS_DIRS"
"""Tells MiniStack's Python runtime where layers are."""


class SharedLayers:
    """Layers by their content, unpacked into one folder; `content_of` returns the archive of what a function names."""

    def __init__(self, folder: Path, content_of: Callable[[Any], bytes | None]) -> None:
        """Unpack nothing yet."""
        self._folder = folder
        self._content_of = content_of
        self._unpacked: set[Path] = set()
        self._lock = Lock()

    def folders_of(self, layers: Iterable[Any]) -> list[Path]:
        """Return the folders of layers in their order, without those that have no content."""
        return [self._unpack(content) for layer in layers if (content := self._content_of(layer))]

    def _unpack(self, content: bytes) -> Path:
        folder = self._folder / hashlib.sha256(content).hexdigest()
        with self._lock:
            if folder not in self._unpacked:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    archive.extractall(folder)
                self._unpacked.add(folder)
        return folder


def share_layers(worker: Any, layers: SharedLayers) -> None:
    """Let the execution environments of a class of MiniStack use these layers, which it then does not unpack."""
    spawn = worker._spawn  # noqa: SLF001 - MiniStack has no other place for it

    def spawn_with_shared_layers(self: Any) -> None:
        config = self.config
        folders = layers.folders_of(self.config.get("Layers", []))
        variables = config.get("Environment", {}).get("Variables", {})
        found = {FOLDERS_VARIABLE: os.pathsep.join(map(str, folders))} if folders else {}
        self.config = {**config, "Layers": [], "Environment": {"Variables": {**variables, **found}}}
        try:
            spawn(self)
        finally:
            self.config = config

    worker._spawn = spawn_with_shared_layers  # noqa: SLF001
