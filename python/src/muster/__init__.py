"""Submit and follow jobs of a muster cluster from Python.

    from muster import Client

    client = Client()                       # MUSTER_URL and SLURM_JWT
    job = client.submit("#!/bin/sh\\nhostname", name="hello", time_limit=5)
    print(client.wait(job).state)

AsyncClient has the same methods as coroutines. The package needs nothing beyond the standard library.
"""

from ._async import AsyncClient
from ._client import Client
from ._errors import ConnectError, Error, JobFailed, NotFound, Refused
from ._records import Job, Node, Partition, Step

__all__ = [
    "AsyncClient",
    "Client",
    "ConnectError",
    "Error",
    "Job",
    "JobFailed",
    "Node",
    "NotFound",
    "Partition",
    "Refused",
    "Step",
]
