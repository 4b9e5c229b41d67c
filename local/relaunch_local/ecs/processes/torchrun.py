"""Stands for torchrun where there is no PyTorch: `python torchrun.py train.py …` or `… -m train …` on each machine.

It behaves as torchrun 2.13 does with the static rendezvous and no restarts, which tests/functional/examples/
test_torchrun.py compares: it begins once PET_NNODES agents have met at PET_MASTER_ADDR and PET_MASTER_PORT, starts
PET_NPROC_PER_NODE workers, one by default, ends with 1 after SIGTERM whatever they did, and with 1 when one of them
fails, once it has stopped the rest. Once all have ended with 0 it waits for the other machines, and hears no SIGTERM.
"""

import contextlib
import json
import os
import select
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

MEET_SECONDS = 600.0
"""How long an agent waits for the others at the start."""
END_SECONDS = 300.0
"""How long an agent whose worker has ended waits for those of the others."""
STOP_SECONDS = 30.0
"""How long it waits for its workers after SIGTERM, unless TORCH_ELASTIC_SHUTDOWN_TIMEOUT says otherwise; and for the
rest of them after the failure of one, whatever that says (`PContext.close`)."""
POLL_SECONDS = 0.1


class Store(socketserver.ThreadingTCPServer):
    """Where processes meet, at rank 0's agent: each names a place and gives a value, and gets those of all there."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        """Listen."""
        super().__init__(address, _Caller)
        self.lock = threading.Lock()
        self.places: dict[str, dict[int, tuple[Any, socket.socket]]] = {}
        self.workers: set[socket.socket] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def meet(self, caller: socket.socket, place: str, rank: int, value: object, size: int) -> None:
        """Keep a value; answer all once the last one of `size` is there."""
        with self.lock:
            here = self.places.setdefault(place, {})
            here[rank] = value, caller
            if len(here) == size:
                answer = json.dumps([here[each][0] for each in sorted(here)]).encode() + b"\n"
                for _, each in self.places.pop(place).values():
                    with contextlib.suppress(OSError):
                        each.sendall(answer)

    def lose(self, caller: socket.socket) -> None:
        """Hang up on all workers if one of them has gone, as the peers of a lost worker see it."""
        with self.lock:
            if caller in self.workers:
                for each in self.workers:
                    with contextlib.suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)


class _Caller(socketserver.StreamRequestHandler):
    server: Store

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            for line in self.rfile:
                place, rank, value, size, is_worker = json.loads(line)
                if is_worker:
                    self.server.workers.add(self.request)
                self.server.meet(self.request, place, rank, value, size)
        self.server.lose(self.request)


class Meeting:
    """A connection to the store, of one of `size` agents or workers."""

    def __init__(self, address: tuple[str, int], rank: int, size: int, *, is_worker: bool) -> None:
        """Connect, as soon as the store listens.

        Raises:
            OSError: Nobody listens there.
        """
        self.rank = rank
        self.size = size
        self.is_worker = is_worker
        self._meetings = 0
        self._connection = _connect(address)
        self._answers = self._connection.makefile("rb")

    def gather(self, value: Any) -> list[Any]:
        """Return what each process gave, in order of rank, as `all_gather_object` of PyTorch does.

        Raises:
            ConnectionError: A process or the store has gone.
        """
        self._meetings += 1
        self.enter(f"gather-{self._meetings}", value)
        return self.answer()

    def enter(self, place: str, value: object = None) -> None:
        """Say that this process is at a place."""
        said = [place, self.rank, value, self.size, self.is_worker]
        self._connection.sendall(json.dumps(said).encode() + b"\n")

    def is_answered(self, seconds: float) -> bool:
        """Wait; return whether all are there, or the store has gone."""
        return bool(select.select([self._connection], [], [], seconds)[0])

    def answer(self) -> list[Any]:
        """Return the values of all processes once they are there."""
        if not (line := self._answers.readline()):
            raise ConnectionError("Connection closed by peer")
        return list(json.loads(line))


def meeting_of_worker(environment: Mapping[str, str] = os.environ) -> Meeting:
    """Connect a worker to the store of its agents."""
    address = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    return Meeting(address, int(environment["RANK"]), int(environment["WORLD_SIZE"]), is_worker=True)


def main(command: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Run the workers of a machine together with those of the other machines; return the exit code.

    Raises:
        ValueError: PET_NPROC_PER_NODE is no number. torchrun counts GPUs for the word `gpu`, and has none here.
    """
    nodes = int(environment["PET_NNODES"])
    rank = int(environment["PET_NODE_RANK"])
    count = int(environment.get("PET_NPROC_PER_NODE", "1"))
    address = environment["PET_MASTER_ADDR"], int(environment["PET_MASTER_PORT"])
    if rank == 0:
        Store(address)
    meeting = Meeting(address, rank, nodes, is_worker=False)
    meeting.enter("start", count)
    if not meeting.is_answered(MEET_SECONDS):
        return _say(f"not all of {nodes} agents came in {MEET_SECONDS:.0f} s", 1)
    counts = meeting.answer()
    _make_log_folder(environment.get("PET_RDZV_ID", "none"))
    # Until here SIGTERM ends the process; the first one of a container ignores it.
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stops.append(number))
    common = {**environment, "MASTER_ADDR": address[0], "MASTER_PORT": str(address[1])}
    if count > 1:
        common.setdefault("OMP_NUM_THREADS", "1")
    workers = [
        subprocess.Popen([sys.executable, "-u", *command], env={**common, **_place_of(rank, local, counts)})
        for local in range(count)
    ]
    while not stops and None in (codes := [each.poll() for each in workers]) and not any(codes):
        time.sleep(POLL_SECONDS)
    if stops:
        _end(workers, stops[0], float(environment.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") or STOP_SECONDS))
        return _say(f"got signal {stops[0]}; the workers ended with {_codes(workers)}", 1)
    if any(codes):
        _end(workers, signal.SIGTERM, STOP_SECONDS)
        return _say(f"the workers ended with {_codes(workers)}", 1)
    return _wait_for_others(meeting)


def _place_of(rank: int, local: int, counts: Sequence[int]) -> dict[str, str]:
    """Return what a worker knows of its place; `counts` are the workers of each machine (`_assign_worker_ranks`)."""
    place = {
        "RANK": sum(counts[:rank]) + local,
        "LOCAL_RANK": local,
        "GROUP_RANK": rank,
        "WORLD_SIZE": sum(counts),
        "LOCAL_WORLD_SIZE": counts[rank],
    }
    return {name: str(value) for name, value in place.items()}


def _make_log_folder(rendezvous_id: str) -> None:
    """Make the folder that torchrun names after the rendezvous (`_make_log_dir` of DefaultLogsSpecs), and nobody needs.

    Raises:
        OSError: the name is none of a folder.
    """
    with tempfile.TemporaryDirectory(prefix="torchelastic_") as base:
        tempfile.mkdtemp(prefix=f"{rendezvous_id}_", dir=base)


def _end(workers: Sequence[subprocess.Popen[bytes]], number: int, seconds: float) -> None:
    """Send a signal to the workers that live, and kill those that have not ended in this time, all together."""
    for each in workers:
        each.send_signal(number)
    end = time.monotonic() + seconds
    for each in workers:
        try:
            each.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()


def _codes(workers: Sequence[subprocess.Popen[bytes]]) -> str:
    return ", ".join(str(each.returncode) for each in workers)


def _wait_for_others(meeting: Meeting) -> int:
    # torchrun waits in its store's code, which lets no handler of a signal run until it returns.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        meeting.enter("end")
        meeting.is_answered(END_SECONDS)
    return 0


def _connect(address: tuple[str, int]) -> socket.socket:
    end = time.monotonic() + MEET_SECONDS
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(POLL_SECONDS)


def _say(text: str, code: int) -> int:
    print(f"torchrun: {text}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
