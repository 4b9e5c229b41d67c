"""What the command prints: tables in the modules of this package, the JSON of `--json` in `json_output`.

Views import the core, the ports and the value types of use cases and adapters; they do not call AWS or use cases.
"""
