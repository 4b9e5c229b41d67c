"""What `make sam-local` prints: progress and a line for each sample, or JSON."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from relaunch_cli.terminal import harmless
from relaunch_local.sam_local.run import Result

_SAMPLE_WIDTH = 47
_EFFECT_WIDTH = 17


class Screen:
    """Prints progress to standard error; results to standard output, as JSON when asked to."""

    def __init__(self, *, as_json: bool) -> None:
        """Begin to count the time."""
        self._as_json = as_json
        self._began = time.monotonic()
        self._console = Console(highlight=False, emoji=False, soft_wrap=True)

    def progress(self, line: str) -> None:
        """Print what is done now."""
        print(f"· {time.monotonic() - self._began:4.1f} s  {line}", file=sys.stderr, flush=True)

    def result(self, result: Result) -> None:
        """Print the line of a sample, and what its function logged if it failed."""
        if self._as_json:
            return
        line = Text()
        line.append("FAILED " if result.has_failed else "ok     ", "bold red" if result.has_failed else "green")
        line.append(f"{result.sample:{_SAMPLE_WIDTH}} {result.effect:{_EFFECT_WIDTH}} {result.seconds:4.1f} s  ")
        line.append(harmless(result.what))
        self._console.print(line)
        if result.has_failed:
            for logged in result.log.splitlines():
                self._console.print(Text(f"       | {harmless(logged)}", "dim"))

    def summary(self, results: Sequence[Result]) -> None:
        """Print how many samples were invoked and how many failed."""
        seconds = time.monotonic() - self._began
        failed = [each for each in results if each.has_failed]
        if self._as_json:
            content = {
                "seconds": round(seconds, 1),
                "failed": len(failed),
                "results": [each.to_json() for each in results],
            }
            print(json.dumps(content, indent=2))
            return
        effects = Counter(each.effect for each in results if not each.has_failed)
        counted = ", ".join(f"{count} {effect}" for effect, count in effects.most_common())
        text = f"{len({each.sample for each in results})} samples, {len(results)} outcomes in {seconds:.0f} s: "
        self._console.print(f"\n{text}{counted or 'none as expected'}")
        for each in failed:
            self._console.print(Text(f"FAILED {each.sample}: {each.effect}", "bold red"))
