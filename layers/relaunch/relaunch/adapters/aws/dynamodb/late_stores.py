"""The stores of the jobs table by name: each is imported when it is first used, for short cold starts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaunch.late import load_late

if TYPE_CHECKING:
    from relaunch.adapters.aws.dynamodb.budgets import DynamoDbBudgets as DynamoDbBudgets
    from relaunch.adapters.aws.dynamodb.capacity import DynamoDbCapacity as DynamoDbCapacity
    from relaunch.adapters.aws.dynamodb.definitions import DynamoDbDefinitions as DynamoDbDefinitions
    from relaunch.adapters.aws.dynamodb.events import DynamoDbEvents as DynamoDbEvents
    from relaunch.adapters.aws.dynamodb.jobs import DynamoDbJobs as DynamoDbJobs
    from relaunch.adapters.aws.dynamodb.machines import DynamoDbMachines as DynamoDbMachines
    from relaunch.adapters.aws.dynamodb.maintenance import DynamoDbMaintenance as DynamoDbMaintenance
    from relaunch.adapters.aws.dynamodb.notices import DynamoDbNotices as DynamoDbNotices
    from relaunch.adapters.aws.dynamodb.rates import DynamoDbRates as DynamoDbRates

NAMES: Mapping[str, tuple[str, ...]] = {
    "relaunch.adapters.aws.dynamodb.budgets": ("DynamoDbBudgets",),
    "relaunch.adapters.aws.dynamodb.capacity": ("DynamoDbCapacity",),
    "relaunch.adapters.aws.dynamodb.definitions": ("DynamoDbDefinitions",),
    "relaunch.adapters.aws.dynamodb.events": ("DynamoDbEvents",),
    "relaunch.adapters.aws.dynamodb.jobs": ("DynamoDbJobs",),
    "relaunch.adapters.aws.dynamodb.machines": ("DynamoDbMachines",),
    "relaunch.adapters.aws.dynamodb.maintenance": ("DynamoDbMaintenance",),
    "relaunch.adapters.aws.dynamodb.notices": ("DynamoDbNotices",),
    "relaunch.adapters.aws.dynamodb.rates": ("DynamoDbRates",),
}
"""What is imported when it is first used, by module; the imports above say the same to the type checker."""

# Hidden from the type checker, which else would take any name for one of this module.
if not TYPE_CHECKING:
    __getattr__ = load_late(__name__, NAMES)
