"""What `make local` prints makes another terminal use the local world."""

import subprocess
import sys
from pathlib import Path

from relaunch_local.__main__ import print_exports


def test_after_the_printed_lines_the_command_is_found_and_has_its_variables(capsys):
    print_exports({"AWS_ENDPOINT_URL": "http://127.0.0.1:1/a b"})

    script = f'{capsys.readouterr().out}\nprintf "%s\\n" "$AWS_ENDPOINT_URL" "$PATH"'
    done = subprocess.run(["/bin/sh", "-c", script], env={"PATH": "/b"}, capture_output=True, text=True, check=True)

    assert done.stdout == f"http://127.0.0.1:1/a b\n{Path(sys.executable).parent}:/b\n"
