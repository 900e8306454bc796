"""The client, over the REST interface."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import urllib.parse
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import ConnectError, Error, JobFailed, NotFound, Refused
from ._records import Job, Node, Partition, Raw

VERSION = "v0.0.44"

# Options of submit that are numbers, which Slurm wraps into {set, number}.
_WRAPPED = frozenset(
    ("time_limit", "time_minimum", "priority", "memory_per_cpu", "memory_per_node", "begin_time", "deadline")
)


class _Unix(http.client.HTTPConnection):
    """A connection by a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _number(value: int) -> Dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


def is_over(job: int, seen: Optional[Job], check: bool) -> bool:
    """Tell whether a job that is waited for is over. With check, one that has not completed raises JobFailed."""
    if seen is None or not seen.ended:
        return False
    if check and seen.state != "COMPLETED":
        raise JobFailed(f"job {job} is {seen.state} ({seen.reason}), exit code {seen.exit_code}", seen)
    return True


def pause_before(job: int, seen: Optional[Job], poll: float, end: Optional[float]) -> float:
    """Return the seconds until a job is looked at again. Past end, of time.monotonic, TimeoutError is raised."""
    pause = poll if end is None else min(poll, end - time.monotonic())
    if pause <= 0:
        raise TimeoutError(f"job {job} is not over: {seen.state if seen else 'no server answers'}")
    return pause


class Client:
    """A cluster, as the user of a token.

    url is where servers answer (default: MUSTER_URL); several, separated by commas, are tried in turn. token is what
    scontrol token prints (default: SLURM_JWT). With socket, a server's --rest-socket, the kernel tells who asks and
    no token is needed. timeout is in seconds, of one request.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        socket: Optional[str] = None,
        timeout: float = 30.0,
    ) -> None:
        self._socket = socket
        self._token = token or os.environ.get("SLURM_JWT", "")
        text = url or os.environ.get("MUSTER_URL", "")
        self._urls = [u.strip().rstrip("/") for u in text.split(",") if u.strip()]
        self._timeout = timeout
        if not self._urls and not socket:
            raise ConnectError("no server is named: set MUSTER_URL=http://HOST:7480, or give url or socket")

    # Requests

    def _connection(self, url: str) -> Tuple[http.client.HTTPConnection, str]:
        if self._socket:
            return _Unix(self._socket, self._timeout), ""
        u = urllib.parse.urlsplit(url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if u.scheme not in kinds or not u.hostname:
            raise ConnectError(f"{url!r} is not the address of a server: want http://HOST:PORT or https://HOST:PORT")
        return kinds[u.scheme](u.hostname, u.port, timeout=self._timeout), u.path

    def _once(self, url: str, method: str, path: str, body: Optional[bytes]) -> Tuple[int, bytes]:
        headers = {"Accept": "application/json"}
        if self._token:
            headers["X-SLURM-USER-TOKEN"] = self._token
        if body is not None:
            headers["Content-Type"] = "application/json"
        conn, before = self._connection(url)
        try:
            conn.connect()
        except OSError as e:
            raise ConnectError(f"{self._socket or url} does not answer: {e}") from e
        try:
            conn.request(method, before + path, body, headers)
            answer = conn.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as e:
            raise Error(f"{method} {path}: no answer came, and it may have been done: {e!r}") from e
        finally:
            conn.close()

    def request(self, method: str, path: str, body: Any = None, query: Optional[Mapping[str, Any]] = None) -> Raw:
        """Make a request of the REST interface, and return its answer.

        path begins with /slurm/ or /slurmdb/. A server that cannot be connected to is left for the next one; a
        request that a server has received is never repeated.
        """
        if query:
            path += "?" + urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})
        text = None if body is None else json.dumps(body).encode()
        last: Optional[ConnectError] = None
        for url in list(self._urls) or [""]:
            try:
                status, answer = self._once(url, method, path, text)
            except ConnectError as e:
                last = e
                if url:
                    self._urls.append(self._urls.pop(0))
                continue
            return self._read(status, answer)
        raise last or ConnectError("no server is named")

    @staticmethod
    def _read(status: int, answer: bytes) -> Raw:
        try:
            out = json.loads(answer) if answer else {}
        except ValueError:
            out = {}
        errors = out.get("errors") if isinstance(out, dict) else None
        if status < 400 and not errors:
            for note in out.get("warnings") or [] if isinstance(out, dict) else []:
                warnings.warn(f"the server says: {note.get('description') or note}", stacklevel=4)
            return out
        first = errors[0] if errors else {}
        said = first.get("error") or first.get("description") or answer.decode(errors="replace").strip()
        more = first.get("description") or ""
        text = said if more in ("", said) else f"{said}: {more}"
        kind = {401: Refused, 403: Refused, 404: NotFound}.get(status, Error)
        raise kind(text or f"status {status}", int(first.get("error_number") or 0), status)

    def _slurm(self, method: str, path: str, body: Any = None, query: Optional[Mapping[str, Any]] = None) -> Raw:
        return self.request(method, f"/slurm/{VERSION}/{path}", body, query)

    # Jobs

    def submit(
        self,
        script: str,
        *,
        name: Optional[str] = None,
        cwd: Optional[str] = None,
        env: Optional[Union[Mapping[str, str], Iterable[str]]] = None,
        **options: Any,
    ) -> int:
        """Submit a batch script, and return the job's number.

        options are fields of Slurm's REST interface (partition, tasks, nodes, cpus_per_task, tres_per_node="gres/gpu:8",
        time_limit in minutes, memory_per_node in MB, dependency, array, account, qos, …). #SBATCH lines of the script
        are not read, as in Slurm's REST interface. cwd is the working directory (default: this process's), env the
        job's environment (default: PATH alone).
        """
        job: Dict[str, Any] = {"current_working_directory": cwd or os.getcwd()}
        if name is not None:
            job["name"] = name
        if env is None:
            env = {"PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")}
        job["environment"] = [f"{k}={v}" for k, v in env.items()] if isinstance(env, Mapping) else list(env)
        for key, value in options.items():
            if value is None:
                continue
            wrap = key in _WRAPPED and not isinstance(value, dict)
            job[key] = _number(int(value)) if wrap else value
        return int(self._slurm("POST", "job/submit", {"script": script, "job": job})["job_id"])

    def job(self, job: int) -> Job:
        """Return a job: from the queue, or from the accounting database once it has left that."""
        try:
            found = self._slurm("GET", f"job/{job}").get("jobs")
            if found:
                return Job.of_queue(found[0])
        except NotFound:
            pass
        found = self.request("GET", f"/slurmdb/{VERSION}/job/{job}").get("jobs")
        if not found:
            raise NotFound(f"there is no job {job}", 2017, 404)
        return Job.of_history(found[-1])

    def jobs(self) -> List[Job]:
        """Return the jobs of the queue: those that wait or run, and those that ended a short time ago."""
        return [Job.of_queue(j) for j in self._slurm("GET", "jobs")["jobs"]]

    def history(self, **query: Any) -> List[Job]:
        """Return jobs of the accounting database.

        query are parameters of /slurmdb/…/jobs: users, account, partition, state, start_time, end_time, …
        """
        return [Job.of_history(j) for j in self.request("GET", f"/slurmdb/{VERSION}/jobs", query=query)["jobs"]]

    def update(self, job: int, **fields: Any) -> None:
        """Change a job: time_limit in minutes, priority, partition, comment, hold, …"""
        body = {k: _number(int(v)) if k in _WRAPPED and not isinstance(v, dict) else v for k, v in fields.items()}
        self._slurm("POST", f"job/{job}", body)

    def cancel(self, job: int, signal: Optional[str] = None) -> None:
        """End a job, or send it a signal: USR1, …"""
        self._slurm("DELETE", f"job/{job}", query={"signal": signal})

    def wait(
        self, job: Union[int, Sequence[int]], *, timeout: Optional[float] = None, poll: float = 1.0, check: bool = False
    ) -> Any:
        """Wait until a job, or each of several, is over, and return its record, or a list of them.

        timeout is in seconds, of all; after it TimeoutError is raised. With check a job that has not completed raises
        JobFailed. A server that does not answer is asked again.
        """
        if not isinstance(job, int):
            end = None if timeout is None else time.monotonic() + timeout
            left = lambda: None if end is None else max(end - time.monotonic(), 0.0)  # noqa: E731
            return [self.wait(j, timeout=left(), poll=poll, check=check) for j in job]
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            seen: Optional[Job] = None
            try:
                seen = self.job(job)
            except ConnectError:
                pass
            if is_over(job, seen, check):
                return seen
            time.sleep(pause_before(job, seen, poll, end))

    # Nodes and partitions

    def nodes(self) -> List[Node]:
        """Return the compute nodes."""
        return [Node.of(n) for n in self._slurm("GET", "nodes")["nodes"]]

    def node(self, name: str) -> Node:
        """Return a compute node."""
        return Node.of(self._slurm("GET", "node/" + urllib.parse.quote(name, safe=""))["nodes"][0])

    def partitions(self) -> List[Partition]:
        """Return the partitions."""
        return [Partition.of(p) for p in self._slurm("GET", "partitions")["partitions"]]

    def ping(self) -> Raw:
        """Ask whether the cluster's servers answer."""
        return self._slurm("GET", "ping")
