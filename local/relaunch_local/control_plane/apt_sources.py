"""The machine's package sources, with source packages, and nothing that Debian has not signed.

Sources: sources.list(5), which describes both forms.
"""

import re
from collections.abc import Iterator, Mapping

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_FIELD = re.compile(r"(?im)^(?P<name>[a-z-]+):[ \t]*(?P<value>.*)$")
_LINE = re.compile(r"deb[ \t]+(?:\[(?P<options>[^\]]*)\][ \t]+)?(?P<rest>\S+[ \t]+\S.*)")


def derive_sources(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a configuration of apt by name, made of those of the machine.

    Each source of packages becomes one of source packages too; those with another keyring than Debian's are left out.
    """
    derived = {name: "".join(_derive(name, text)) for name, text in files.items()}
    return {name: text for name, text in derived.items() if text}


def _derive(name: str, text: str) -> Iterator[str]:
    if name.endswith(".sources"):
        for stanza in re.split(r"\n[ \t]*\n", _without_comments(text)):
            yield from _derive_stanza(stanza.strip())
    elif name.endswith(".list"):
        for line in _without_comments(text).splitlines():
            yield from _derive_line(line.strip())


def _derive_stanza(stanza: str) -> Iterator[str]:
    fields = {found["name"].lower(): found["value"].strip() for found in _FIELD.finditer(stanza)}
    is_enabled = fields.get("enabled", "yes").lower() in {"yes", "true", "with", "on", "enable"}
    if "deb" not in fields.get("types", "").split() or not is_enabled or not _is_debians(fields.get("signed-by", "")):
        return
    kept = re.sub(r"(?im)^(types|signed-by|enabled):.*\n?", "", stanza + "\n")
    yield f"Types: deb deb-src\n{kept}Signed-By: {KEYRING}\n\n"


def _derive_line(line: str) -> Iterator[str]:
    found = _LINE.fullmatch(line)
    if found is None:
        return
    options = dict(each.partition("=")[::2] for each in (found["options"] or "").split())
    if not _is_debians(options.pop("signed-by", "")):
        return
    said = " ".join([*(f"{name}={value}" for name, value in options.items()), f"signed-by={KEYRING}"])
    yield "".join(f"{kind} [{said}] {found['rest']}\n" for kind in ("deb", "deb-src"))


def _is_debians(keyring: str) -> bool:
    return keyring in {"", KEYRING}


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
