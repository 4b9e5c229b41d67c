"""Put user data, which lies in files of its own, into the template of machines.

Run `python infrastructure/assemble.py` after a change of infrastructure/user_data or of the stop time-out.
"""

import re
from pathlib import Path

from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS

INFRASTRUCTURE = Path(__file__).resolve().parent
TEMPLATE = INFRASTRUCTURE / "machines.yaml"
USER_DATA = INFRASTRUCTURE / "user_data"

_INCLUDE = re.compile(r"^@include (\S+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *#.*\n", re.MULTILINE)
_PLACE = re.compile(r"^( *)# boot\.sh begins\n.*?^\1# boot\.sh ends\n", re.MULTILINE | re.DOTALL)


def assemble_script(folder: Path) -> str:
    """Return boot.sh with the files that it includes, most of which it reads up to the line `END`.

    Its own comments and those of what it includes as a part of itself are left out: user data may have 16 KB. Files
    that it writes to the machine keep theirs.

    Raises:
        ValueError: a file has such a line itself, or does not end with a line.
    """

    def include(match: re.Match[str]) -> str:
        text = (folder / match[1]).read_text(encoding="utf-8")
        if match[1].endswith(".sh") and not text.startswith("#!"):
            text = _COMMENT.sub("", text)
        if "END" in text.splitlines() or not text.endswith("\n"):
            raise ValueError(f"{match[1]} would not end where it ends: it has a line END, or no end of line at its end")
        return text

    script = _COMMENT.sub("", (folder / "boot.sh").read_text(encoding="utf-8"))
    return _INCLUDE.sub(include, script).replace("@stop_timeout_seconds@", str(STOP_TIMEOUT_SECONDS))


def assemble_template(template: str, script: str) -> str:
    """Return the template with the script between its two comments, as far to the right as they are.

    Raises:
        ValueError: the template has no such place, or more than one.
    """

    def place(match: re.Match[str]) -> str:
        lines = ("# boot.sh begins", *script.splitlines(), "# boot.sh ends")
        return "".join(f"{match[1]}{line}\n" if line else "\n" for line in lines)

    assembled, places = _PLACE.subn(place, template)
    if places != 1:
        raise ValueError(f"{places} places begin with the comment `boot.sh begins`, not one")
    return assembled


def main() -> None:
    """Write the template anew."""
    TEMPLATE.write_text(
        assemble_template(TEMPLATE.read_text(encoding="utf-8"), assemble_script(USER_DATA)), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
