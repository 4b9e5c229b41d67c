import pytest

from relaunch_local.control_plane.apt_sources import KEYRING, derive_sources

STANZAS = f"""# Debian
Types: deb
# a comment
URIs: http://debian.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: {KEYRING}

Types: deb
URIs: http://vendor.example/apt
Suites: stable
Components: main
Signed-By: /usr/share/keyrings/vendor.gpg

Types: deb
Enabled: no
URIs: http://debian.example/disabled
Suites: bookworm
Components: main
"""


def test_each_source_of_debian_becomes_one_of_source_packages_too() -> None:
    assert derive_sources({"debian.sources": STANZAS, "README": "deb http://a b c\n"}) == {
        "debian.sources": (
            "Types: deb deb-src\nURIs: http://debian.example/debian\nSuites: bookworm bookworm-updates\n"
            f"Components: main\nSigned-By: {KEYRING}\n\n"
        )
    }


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("deb http://debian.example/debian bookworm main", f"signed-by={KEYRING}"),
        ("deb [arch=amd64] http://debian.example/debian bookworm main", f"arch=amd64 signed-by={KEYRING}"),
        (f"deb [signed-by={KEYRING}] http://debian.example/debian bookworm main", f"signed-by={KEYRING}"),
    ],
)
def test_a_line_becomes_two(line: str, options: str) -> None:
    rest = "http://debian.example/debian bookworm main"

    assert derive_sources({"sources.list": f"# {line}\n{line}\n"}) == {
        "sources.list": f"deb [{options}] {rest}\ndeb-src [{options}] {rest}\n"
    }


@pytest.mark.parametrize(
    "line", ["deb [signed-by=/vendor.gpg] http://vendor.example/apt stable main", "deb-src http://a b c", "", "deb"]
)
def test_what_debian_has_not_signed_and_what_is_no_source_of_packages_is_left_out(line: str) -> None:
    assert derive_sources({"vendor.list": line}) == {}
