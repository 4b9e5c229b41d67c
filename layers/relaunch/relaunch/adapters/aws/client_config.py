"""How the clients of AWS call: short time-outs, and up to three sends of each call.

So any call may take effect, lose its answer, and be sent again by its client alone.
"""

from botocore.config import Config

CLIENT_CONFIG = Config(
    connect_timeout=3,
    # Short enough that a function can retry a hanging call within its time-out.
    read_timeout=8,
    retries={"mode": "standard", "total_max_attempts": 3},
    user_agent_extra="relaunch",
)

# CreateFleet answers when it has tried the offerings, about one per second; a repetition is ours to decide on.
FLEET_CONFIG = CLIENT_CONFIG.merge(Config(read_timeout=40, retries={"mode": "standard", "total_max_attempts": 1}))
