"""How the clients of AWS call: short time-outs, three attempts."""

from botocore.config import Config

CLIENT_CONFIG = Config(
    connect_timeout=3,
    read_timeout=8,
    retries={"mode": "standard", "total_max_attempts": 3},
    user_agent_extra="relaunch",
)
