"""`relaunch schema`."""

from relaunch.adapters.definition_file.schema import write_schema
from relaunch_cli.views.screen import print_text


def schema() -> None:
    """Print the JSON Schema of definition files, for editors that complete and check keys.

    \b
    relaunch schema > relaunch.schema.json
    and as the first line of relaunch.yaml, for the YAML language server:
    # yaml-language-server: $schema=relaunch.schema.json
    """  # noqa: D301 - click's mark for lines to be left as they are
    print_text(write_schema().rstrip("\n"))
