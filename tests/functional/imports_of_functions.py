"""Prints what each function has imported and made before its first event, as JSON by function.

`modules` are the names of all modules, `patterns` is how many regular expressions our own have compiled, `models` are
those of ours that pydantic has built, `collector` is after how many objects cycles are looked for.

Each is forked from one process that has what all of them have, of the packages that are not ours.
"""

import gc
import importlib
import json
import os
import re
import sys

for name in ("aws_lambda_powertools", "botocore.session"):
    importlib.import_module(name)


def is_built(value: object) -> bool:
    """Return whether pydantic has built a model, which it does not of one with `defer_build` before its first use."""
    return (
        isinstance(value, type)
        and value.__module__.startswith("relaunch.")
        and "__pydantic_validator__" in vars(value)
        and vars(value).get("__pydantic_complete__") is True
    )


for function in sys.argv[1:]:
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        importlib.import_module(f"{function}.handler")
        if function not in ("github_webhook", "refresh_offerings"):
            importlib.import_module("relaunch.bootstrap").function()
        own = [vars(module) for name, module in sys.modules.items() if name.partition(".")[0] == "relaunch"]
        patterns = sum(isinstance(value, re.Pattern) for module in own for value in module.values())
        models = {name for module in own for name, value in module.items() if is_built(value)}
        made = {
            "models": sorted(models),
            "modules": sorted(sys.modules),
            "patterns": patterns,
            "collector": gc.get_threshold()[0],
        }
        with os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(made))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        sys.stdout.write(json.dumps({function: json.load(answer)}) + "\n")
    os.wait()
