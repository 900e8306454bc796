"""Records of jobs, steps, nodes and partitions.

Attributes have the names that pyslurm uses. raw is the record as the REST interface sends it, with all of its fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

Raw = Dict[str, Any]

ENDED = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED TIMEOUT".split()
)


def number(value: Any) -> Optional[int]:
    """Read a number as Slurm sends it: {set, infinite, number}. None: not set, or without a bound."""
    if isinstance(value, dict):
        if not value.get("set") or value.get("infinite"):
            return None
        value = value.get("number")
    return None if value is None else int(value)


def words(value: Any) -> List[str]:
    """Read a list of words, which older versions send as one."""
    if isinstance(value, str):
        return [value]
    return list(value or [])


@dataclass(frozen=True)
class Job:
    """A job of the queue, or of the accounting database. Times are seconds since 1970, memory is in MB."""

    id: int
    name: str
    state: str
    user_name: str
    account: str
    partition: str
    nodes: str
    reason: str
    exit_code: Optional[int]
    exit_signal: Optional[int]
    submit_time: Optional[int]
    start_time: Optional[int]
    end_time: Optional[int]
    time_limit: Optional[int]  # minutes
    array_id: Optional[int]
    array_task_id: Optional[int]
    standard_output: str
    raw: Raw = field(repr=False, compare=False)

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.state in ENDED and "COMPLETING" not in words(self.raw.get("job_state"))

    @classmethod
    def of_queue(cls, raw: Raw) -> "Job":
        """Make a Job from a record of the queue."""
        return cls._of(
            raw,
            state=(words(raw.get("job_state")) or [""])[0],
            user_name=raw.get("user_name") or "",
            reason=raw.get("state_reason") or "",
            times=tuple(raw.get(k) for k in ("submit_time", "start_time", "end_time", "time_limit")),
            array=(raw.get("array_job_id"), raw.get("array_task_id")),
            standard_output=raw.get("standard_output") or "",
        )

    @classmethod
    def of_history(cls, raw: Raw) -> "Job":
        """Make a Job from a record of the accounting database."""
        time, state, array = raw.get("time") or {}, raw.get("state") or {}, raw.get("array") or {}
        return cls._of(
            raw,
            state=(words(state.get("current")) or [""])[0],
            user_name=raw.get("user") or "",
            reason=state.get("reason") or "",
            times=tuple(time.get(k) for k in ("submission", "start", "end", "limit")),
            array=(array.get("job_id"), array.get("task_id")),
            standard_output=raw.get("stdout_expanded") or raw.get("stdout") or "",
        )

    @classmethod
    def _of(cls, raw: Raw, *, times: Tuple[Any, ...], array: Tuple[Any, Any], **texts: str) -> "Job":
        """Make a Job from the fields that both kinds of record share, and those that differ."""
        code = raw.get("exit_code") or {}
        submitted, started, ended, limit = (number(t) for t in times)
        return cls(
            id=int(raw["job_id"]),
            name=raw.get("name") or "",
            account=raw.get("account") or "",
            partition=raw.get("partition") or "",
            nodes=raw.get("nodes") or "",
            exit_code=number(code.get("return_code")),
            exit_signal=number((code.get("signal") or {}).get("id")),
            submit_time=submitted,
            start_time=started,
            end_time=ended,
            time_limit=limit,
            array_id=number(array[0]) or None,
            array_task_id=number(array[1]),
            raw=raw,
            **texts,
        )

    @property
    def steps(self) -> List["Step"]:
        """The steps of a job of the accounting database."""
        return [Step.of_history(s) for s in self.raw.get("steps") or []]


@dataclass(frozen=True)
class Step:
    """A step of a job."""

    id: str
    name: str
    state: str
    exit_code: Optional[int]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of_history(cls, raw: Raw) -> "Step":
        """Make a Step from a record of the accounting database."""
        step, code = raw.get("step") or {}, raw.get("exit_code") or {}
        return cls(
            id=str(step.get("id", "")),
            name=step.get("name") or "",
            state=(words(raw.get("state")) or [""])[0],
            exit_code=number(code.get("return_code")),
            raw=raw,
        )


@dataclass(frozen=True)
class Node:
    """A compute node. Memory is in MB."""

    name: str
    state: str
    flags: List[str]
    total_cpus: int
    allocated_cpus: int
    real_memory: int
    allocated_memory: int
    gres: str
    gres_used: str
    reason: str
    partitions: List[str]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> "Node":
        """Make a Node from a record."""
        states = words(raw.get("state"))
        return cls(
            name=raw.get("name") or "",
            state=(states or [""])[0],
            flags=states[1:],
            total_cpus=int(raw.get("cpus") or 0),
            allocated_cpus=int(raw.get("alloc_cpus") or 0),
            real_memory=int(raw.get("real_memory") or 0),
            allocated_memory=int(raw.get("alloc_memory") or 0),
            gres=raw.get("gres") or "",
            gres_used=raw.get("gres_used") or "",
            reason=raw.get("reason") or "",
            partitions=words(raw.get("partitions")),
            raw=raw,
        )


@dataclass(frozen=True)
class Partition:
    """A partition."""

    name: str
    state: str
    nodes: str
    total_nodes: int
    total_cpus: int
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> "Partition":
        """Make a Partition from a record."""
        nodes, cpus, part = raw.get("nodes") or {}, raw.get("cpus") or {}, raw.get("partition") or {}
        return cls(
            name=raw.get("name") or "",
            state=(words(part.get("state")) or [""])[0],
            nodes=nodes.get("configured") or "",
            total_nodes=int(nodes.get("total") or 0),
            total_cpus=int(cpus.get("total") or 0),
            raw=raw,
        )
