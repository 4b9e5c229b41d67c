"""The memory that processes on several GPUs share at /dev/shm.

A runtime gives a container 64 MiB there, and NCCL fails to initialize where that is not enough ("Shared memory" of
"Runtime and MPI issues", NVIDIA NCCL User Guide, which tells containers to have 1 GiB). It was seen on GPUs that do not
reach each other by NVLink (NVIDIA/nccl#290, NVIDIA/nccl#525).
"""

PATH = "/dev/shm"  # noqa: S108 - of a container


def shared_memory_notice(gpus: int, remedy: str) -> tuple[str, ...]:
    """Return what the owner of a job should know whose container has these GPUs and the runtime's default /dev/shm.

    `remedy` is what to set.
    """
    if gpus < 2:
        return ()
    return (
        f"processes on {gpus} GPUs share {PATH}, which has 64 MiB: NCCL may not start there, above all without NVLink "
        f"(`No space left on device`), and each attempt counts as a failure of the program; {remedy}",
    )
