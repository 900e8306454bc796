"""The client for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import Any, List, Optional, Sequence, Union

from ._client import Client, is_over, pause_before
from ._errors import ConnectError
from ._records import Job, Node, Partition, Raw


class AsyncClient:
    """Client, whose methods are coroutines. Requests run in threads of the event loop's executor."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._client = Client(*args, **options)

    async def request(self, method: str, path: str, body: Any = None, query: Any = None) -> Raw:
        """See Client.request."""
        return await asyncio.to_thread(self._client.request, method, path, body, query)

    async def submit(self, script: str, **options: Any) -> int:
        """See Client.submit."""
        return await asyncio.to_thread(lambda: self._client.submit(script, **options))

    async def job(self, job: int) -> Job:
        """See Client.job."""
        return await asyncio.to_thread(self._client.job, job)

    async def jobs(self) -> List[Job]:
        """See Client.jobs."""
        return await asyncio.to_thread(self._client.jobs)

    async def history(self, **query: Any) -> List[Job]:
        """See Client.history."""
        return await asyncio.to_thread(lambda: self._client.history(**query))

    async def update(self, job: int, **fields: Any) -> None:
        """See Client.update."""
        await asyncio.to_thread(lambda: self._client.update(job, **fields))

    async def cancel(self, job: int, signal: Optional[str] = None) -> None:
        """See Client.cancel."""
        await asyncio.to_thread(self._client.cancel, job, signal)

    async def wait(
        self, job: Union[int, Sequence[int]], *, timeout: Optional[float] = None, poll: float = 1.0, check: bool = False
    ) -> Any:
        """See Client.wait. No thread waits meanwhile, so thousands of jobs can be waited for at once."""
        if not isinstance(job, int):
            several = (self.wait(j, timeout=timeout, poll=poll, check=check) for j in job)
            return list(await asyncio.gather(*several))
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seen: Optional[Job] = None
            try:
                seen = await self.job(job)
            except ConnectError:
                pass
            if is_over(job, seen, check):
                return seen
            await asyncio.sleep(pause_before(job, seen, poll, end))

    async def nodes(self) -> List[Node]:
        """See Client.nodes."""
        return await asyncio.to_thread(self._client.nodes)

    async def node(self, name: str) -> Node:
        """See Client.node."""
        return await asyncio.to_thread(self._client.node, name)

    async def partitions(self) -> List[Partition]:
        """See Client.partitions."""
        return await asyncio.to_thread(self._client.partitions)

    async def ping(self) -> Raw:
        """See Client.ping."""
        return await asyncio.to_thread(self._client.ping)
