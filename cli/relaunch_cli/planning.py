"""Making plans: what is asked, read and checked before AWS is, then held against the ground there is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from relaunch.adapters.definition_file.ad_hoc_request import AdHocRequest, AdHocRequestError, Value, parse_request
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.usecases.plan_jobs import Plan
from relaunch_cli.aws.connection import Connection
from relaunch_cli.definition_files import parse_file, read_file
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import load_definition
from relaunch_cli.plan_basis import Ground, find_ground, live_ground
from relaunch_cli.views.screen import progress

Planned = tuple[Ground, list[Plan]]
_REFUSED = "nothing was planned"


@dataclass(frozen=True)
class PlanMaker:
    """Makes plans where the options of the command say; what can be wrong without AWS is found before AWS is asked."""

    connection: Connection
    region: str
    zones: Sequence[str]
    is_offline: bool
    has_all_types: bool

    def plan_request(self, options: Mapping[str, Value]) -> Planned:
        """Plan a job that options describe.

        Raises:
            CommandError: the options cannot be.
        """
        request = parse_options(options)
        ground = self._ground()
        with progress("reading prices"):
            return ground, [ground.plan_request(request, self.zones)]

    def plan_file(self, file: Path) -> Planned:
        """Plan the jobs of a file's definitions, as if it were applied.

        Raises:
            CommandError: the file has problems.
        """
        text = read_file(file)
        definitions = parse_file(text, file, so=_REFUSED)
        ground = self._ground()
        with progress("reading prices and revisions"):
            if ground.deps is not None:
                registered = ground.deps.definitions.list_definitions()
                definitions = parse_file(text, file, registered, so=_REFUSED)
            return ground, ground.plan_definitions(definitions, self.zones)

    def plan_registered(self, name: str) -> Planned:
        """Plan a job of a registered definition.

        Raises:
            CommandError: there is no such definition, or no stack.
        """
        deps = self.connection.deps
        definition = load_definition(deps, name)
        ground = live_ground(self.connection, has_all_types=self.has_all_types)
        ground.check_zones(self.zones)
        with progress("reading prices and revisions"):
            return ground, ground.plan_definitions([definition], self.zones)

    def _ground(self) -> Ground:
        ground = find_ground(self.connection, self.region, is_offline=self.is_offline, has_all_types=self.has_all_types)
        ground.check_zones(self.zones)
        return ground


def parse_options(options: Mapping[str, Value]) -> AdHocRequest:
    """Read options as a job.

    Raises:
        CommandError: they cannot be; all problems but the last are printed.
    """
    try:
        return parse_request(options, load_catalogue())
    except AdHocRequestError as error:
        for problem in error.problems[:-1]:
            typer.secho(f"relaunch: {problem}", err=True, fg="red")
        raise CommandError(error.problems[-1]) from error
