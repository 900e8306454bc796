"""Tests of the client against a live cluster: MUSTER_URL and SLURM_JWT. They submit small jobs."""

import asyncio
import os
import tempfile
import unittest
import warnings

from muster import AsyncClient, Client, ConnectError, Error, JobFailed, NotFound, Refused

SOON = {"timeout": 60, "poll": 0.1}


class Jobs(unittest.TestCase):
    """What a client does with jobs."""

    def setUp(self):
        self.client = Client()
        self.dir = tempfile.mkdtemp()

    def submit(self, script, **options):
        return self.client.submit("#!/bin/sh\n" + script, cwd=self.dir, **options)

    def test_completes(self):
        out = os.path.join(self.dir, "out")
        env = {"PATH": "/usr/bin:/bin", "WORD": "hello"}
        job = self.submit("echo $WORD", name="named", time_limit=5, env=env, standard_output=out)
        seen = self.client.wait(job, check=True, **SOON)
        self.assertEqual((seen.id, seen.name, seen.state, seen.exit_code), (job, "named", "COMPLETED", 0))
        self.assertEqual(seen.time_limit, 5)
        with open(out) as f:
            self.assertEqual(f.read(), "hello\n")

    def test_fails(self):
        job = self.submit("exit 4")
        with self.assertRaises(JobFailed) as failed:
            self.client.wait(job, check=True, **SOON)
        self.assertEqual((failed.exception.job.state, failed.exception.job.exit_code), ("FAILED", 4))
        last = [j for j in self.client.history() if j.id == job][-1]
        self.assertEqual(last.steps[0].exit_code, 4)

    def test_update_and_cancel(self):
        job = self.submit("sleep 300")
        with self.assertRaises(TimeoutError):
            self.client.wait(job, timeout=0.3, poll=0.1)
        self.client.update(job, comment="seen", time_limit=7)
        self.assertEqual((self.client.job(job).time_limit, self.client.job(job).raw["comment"]), (7, "seen"))
        self.client.cancel(job)
        self.assertEqual(self.client.wait(job, **SOON).state, "CANCELLED")

    def test_several(self):
        jobs = [self.submit("true") for _ in range(3)]
        self.assertEqual([j.state for j in self.client.wait(jobs, **SOON)], ["COMPLETED"] * 3)

    def test_asyncio(self):
        async def run():
            client = AsyncClient()
            jobs = await asyncio.gather(*(client.submit("#!/bin/sh\ntrue", cwd=self.dir) for _ in range(5)))
            return [j.state for j in await client.wait(jobs, **SOON)]

        self.assertEqual(asyncio.run(run()), ["COMPLETED"] * 5)

    def test_an_option_that_is_not_known(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.submit("true", nonsense=3)
        self.assertTrue(any("nonsense" in str(w.message) for w in told), told)

    def test_records(self):
        self.assertGreater(self.client.nodes()[0].total_cpus, 0)
        name = self.client.nodes()[0].name
        self.assertEqual(self.client.node(name).name, name)
        self.assertGreater(self.client.partitions()[0].total_nodes, 0)


class Errors(unittest.TestCase):
    """What a client says of what cannot be done."""

    def test_errors(self):
        client = Client()
        for kind, number, do in (
            (NotFound, 2017, lambda: client.job(999_999)),
            (NotFound, 2009, lambda: client.node("nosuch")),
            (Error, 2000, lambda: client.submit("#!/bin/sh\ntrue", partition="nosuch")),
            (Refused, 0, lambda: Client(token="x").jobs()),
            (ConnectError, 0, lambda: Client("http://127.0.0.1:1").jobs()),
            (ConnectError, 0, lambda: Client("ftp://127.0.0.1").jobs()),
        ):
            with self.assertRaises(kind) as failed:
                do()
            self.assertEqual(failed.exception.code, number)

    def test_the_next_server(self):
        client = Client("http://127.0.0.1:1," + os.environ["MUSTER_URL"])
        self.assertTrue(client.ping()["pings"])


if __name__ == "__main__":
    unittest.main()
