"""Errors of the client."""

from __future__ import annotations


class Error(Exception):
    """What a server answers if it does not do what it was asked for.

    code is Slurm's error number (0 if there is none), status the status of HTTP.
    """

    def __init__(self, text: str, code: int = 0, status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class ConnectError(Error):
    """No server could be reached."""


class NotFound(Error):
    """There is no such job, node or partition."""


class Refused(Error):
    """The token is not accepted, or its user may not do this."""


class JobFailed(Error):
    """A job that was waited for did not complete. job is its last record."""

    def __init__(self, text: str, job: object) -> None:
        super().__init__(text)
        self.job = job
