"""How long the steps of starting a gang take, and of starting it again: Relaunch's, and SkyPilot's; in seconds.

What neither has a part in is drawn alike for both: how long a machine takes until it can be used (half within 90 s,
95 % within 180 s, as in local/relaunch_local/simulation/aws/fleet.py), how long it pulls the image (120 s and 180 s, a
judgement), how long saving takes at a stop, and what the program does before its first step.

Relaunch's steps, of which gang_recovery.py composes a life, are measured for one machine by
`python -m relaunch_local.simulation.recovery` (docs/simulation.md): from the warning to SIGTERM 2.2 s (95 %: 2.7), from
the event until its task runs 1.3 s beside boot and pull, in all 4.1 s. Of each further machine it is one call more,
StopTask or RunTask, one after the other; that a call takes 0.1 s is a judgement. What the stack really does is measured
by gang_stack.py, and is more with each machine.

SkyPilot's are those of its managed jobs, version 0.14.1 (the wheel on PyPI), read in its source, on machines of EC2:

- `sky/jobs/controller.py:3703-3706`: without a waiting job the controller looks again after 10 s;
- `sky/jobs/utils.py:95`, `controller.py:1072-1073`: it looks at a job every 15 s; `controller.py:1188-1222`: of several
  nodes it asks EC2 each time; `sky/jobs/utils.py:108`: a job whose head does not answer for up to 30 s;
- nothing in it reads the warning of EC2 (`sky/skylet/skylet.py:114-126`: SIGTERM is handled on Kubernetes, and a poller
  of the metadata is announced for others, which is not in this version);
  `sky/provision/aws/instance.py:797-802`: an instance that shuts down does not count, two minutes after the warning;
- `sky/jobs/recovery_strategy.py:1496-1586`: the strategy that is taken by default ends all instances and launches
  again; `sky/backends/cloud_vm_ray_backend.py:159-160, 5882-5926`: it looks up to ten times, once a second, that they
  end;
- `sky/provision/provisioner.py:124-128` (about 3 s to set up), `152` (1 s), `sky/provision/aws/instance.py:326-327` (as
  many instances, or none), `1145` (looks every 5 s whether they run), `provisioner.py:565-615, 679` (SSH);
- `provisioner.py:702` (the image), `754-904` (files, dependencies, Ray, skylet), on all nodes by SSH, as many at a time
  as `sky/utils/subprocess_utils.py:220` says: 4 with the controller's 4 processors (`sky/jobs/constants.py:57`).

How long it takes to prepare its runtime is from a user's report, "30-40 % of the 3 minutes that it takes to launch"
(skypilot-org/skypilot#3334, 2024); its calls, and the start of a job, are judgements. As a check: with one machine and
no image it comes to 124 s where SSH answers after half a boot of 90 s, and to 169 s where after all of it (medians);
`sky launch --cloud aws` took 142 to 164 s in a pull request of its own (#3575, 2024).
"""

import math
from random import Random

_SPREAD = math.log(2) / 1.645
_PULL_SPREAD = math.log(1.5) / 1.645
USER_DATA = 0.3
"""The share of a boot after which a machine of Relaunch's begins to pull."""
WARNING = 120.0
"""EC2 ends an instance so long after it has warned it ("Spot Instance interruption notices", EC2 User Guide)."""
SAVING = 20.0
PROGRAM = 30.0
"""Until the program has loaded its checkpoint and made a step: a judgement, the same for both."""


def boot(dice: Random) -> float:
    """Draw how long a machine takes from its launch until it can be used."""
    return min(dice.lognormvariate(math.log(90.0), _SPREAD), 400.0)


def pull(dice: Random) -> float:
    """Draw how long a machine pulls the image."""
    return dice.lognormvariate(math.log(120.0), _PULL_SPREAD)


RELAUNCH_ASKED = (1.0, 1.6)
"""From the event until EC2 has answered, and from the end of all tasks: a median of 1.3 s."""
RELAUNCH_WARNED = (2.0, 2.7)
"""From the warning to the first SIGTERM."""
RELAUNCH_ENDED = (0.4, 0.8)
"""From the end of the last task until it is known and the machines are released: what is left of 4.1 s."""
CALL = 0.1

SKYPILOT_CLAIM = 10.0
SKYPILOT_POLL = 15.0
SKYPILOT_LOOK = (2.0, 5.0)
"""A look at the job over SSH, and at EC2: a judgement."""
SKYPILOT_NO_ANSWER = 30.0
SKYPILOT_TEARDOWN = (2.0, 6.0)
"""The call that ends the instances, and a look or some: a judgement."""
SKYPILOT_REQUEST = (2.0, 5.0)
"""The request to its own API server, and the choice: a judgement."""
SKYPILOT_SET_UP = 3.0 + 1.0
SKYPILOT_RUNNING_POLL = 5.0
SKYPILOT_RUNTIME = (54.0, 72.0)
SKYPILOT_JOB = (4.0, 8.0)
"""Files, the program's own `setup` and the start of the job: a judgement; `sky exec` took 8 s (#91, 2021)."""
SKYPILOT_AT_A_TIME = 4
