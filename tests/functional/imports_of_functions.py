"""Prints what each function has imported before its first event, as JSON: the names of modules by function.

Each is forked from one process that has what all of them have, of the packages that are not ours.
"""

import importlib
import json
import os
import sys

for name in ("aws_lambda_powertools", "botocore.session", "pydantic", "pydantic.dataclasses"):
    importlib.import_module(name)

for function in sys.argv[1:]:
    reading, writing = os.pipe()
    if not os.fork():
        os.close(reading)
        importlib.import_module(f"{function}.handler")
        if function not in ("github_webhook", "refresh_offerings"):
            importlib.import_module("relaunch.bootstrap").function()
        with os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(sorted(sys.modules)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        sys.stdout.write(json.dumps({function: json.load(answer)}) + "\n")
    os.wait()
