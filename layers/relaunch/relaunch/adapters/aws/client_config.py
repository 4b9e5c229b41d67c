"""How the clients of AWS call: short time-outs, and up to three sends of a call, two to DynamoDB and EventBridge.

CreateFleet is sent once.

So any other call may take effect, lose its answer, and be sent again by its client alone.
"""

from botocore.config import Config

CLIENT_CONFIG = Config(
    connect_timeout=3,
    # Short enough that a function can retry a hanging call within its time-out.
    read_timeout=8,
    retries={"mode": "standard", "total_max_attempts": 3},
    user_agent_extra="relaunch",
)

# DynamoDB answers within milliseconds. While it does not, five seconds tell: observe_capacity has ten to stop what runs
# on an instance that EC2 takes away.
TABLE_CONFIG = CLIENT_CONFIG.merge(
    Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 2})
)

# Nothing may wait long for EventBridge: what it does not take at once is sent later.
EVENTS_CONFIG = CLIENT_CONFIG.merge(
    Config(connect_timeout=1, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 2})
)

# CreateFleet of an instant fleet answers once it has tried the offerings, about one per second. The use case decides
# whether it is sent again, and first saves that the outcome may be unknown.
SINGLE_SEND_CONFIG = CLIENT_CONFIG.merge(Config(read_timeout=40, retries={"mode": "standard", "total_max_attempts": 1}))
