"""Learn what a fact says of a spot pool: load its record, change it, save it."""

from dataclasses import replace

from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.pool_records import PoolChange, is_news
from relaunch.ports import JobDependencies, PortError

# Each conflict means that another function learned something of the same pool. One observation of many may be lost.
_ATTEMPTS = 4


def learn_pool(offering: OfferingKey, change: PoolChange | None, deps: JobDependencies) -> None:
    """Change the record of a pool; a fact that comes twice, after a later one, or is no news changes nothing.

    What cannot be saved is lost, and logged: no launch and no stop waits for it.
    """
    if change is None:
        return
    reason = f"others learned of it {_ATTEMPTS} times meanwhile"
    try:
        for _ in range(_ATTEMPTS):
            pool = deps.capacity.load_pool(offering)
            record = change(pool.record)
            if not is_news(pool.record, record) or deps.capacity.save_pool(replace(pool, record=record)):
                return
    except PortError as error:
        reason = str(error)
    deps.log.decided("not learned", offering=str(offering), reason=reason)
