"""The plugin of pytest, and the finder, with which some modules are taken from other files than theirs."""

import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

VARIABLE = "REPLACED_MODULES"


class ReplacingFinder:
    """Finds some modules in other files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Find each module of `files` in its file, and all others where they are."""
        self._files = files

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a replaced module, and None for any other."""
        file = self._files.get(name)
        if file is None:
            return None
        return importlib.util.spec_from_file_location(name, file, loader=SourceFileLoader(name, file))


sys.meta_path.insert(0, ReplacingFinder(json.loads(os.environ.get(VARIABLE, "{}"))))
