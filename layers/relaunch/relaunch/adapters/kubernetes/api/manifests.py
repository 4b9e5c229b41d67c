"""Manifests as they are sent."""

from collections.abc import Mapping
from typing import Any


def with_text_quantities(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the quantities of all `limits` and `requests` as text.

    The API takes numbers too, but clients that read the object later refuse them (the official one, from 37 on).
    """
    return {key: _convert(key, value) for key, value in manifest.items()}


def _convert(key: str, value: object) -> object:
    match value:
        case Mapping() if key in {"limits", "requests"}:
            return {name: str(quantity) for name, quantity in value.items()}
        case Mapping():
            return {name: _convert(name, each) for name, each in value.items()}
        case list() | tuple():
            return [_convert("", each) for each in value]
        case _:
            return value
