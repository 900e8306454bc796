#!/usr/bin/env python3
"""Checks muster on a machine with NVIDIA GPUs, and prints one table for docs/hardware.md.

gpu-check.py [MUSTER] runs the program MUSTER, which may be packed (.xz, .gz); the default is muster.xz or muster.gz beside
this script. It needs Python 3.6 and no network, takes at most eight minutes, and changes no settings of the machine: its
cluster, muster dev, listens on the loopback interface and keeps its data in a folder that is removed at the end. For
a check that this machine does not allow it prints "not checked" and the reason. The exit status is 1 if a check failed.
"""

import argparse
import ctypes
import glob
import gzip
import json
import lzma
import os
import platform
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import xml.etree.ElementTree as xml

NODE = "gpucheck"
MIB = 1 << 20


class Failed(Exception):
    """What was checked is wrong."""


class NotChecked(Exception):
    """This machine does not allow the check."""


def need(holds, reason):
    """Ends a check that this machine does not allow."""
    if not holds:
        raise NotChecked(reason)


def require(holds, what):
    """Ends a check that found something wrong."""
    if not holds:
        raise Failed(what)


# ---- the load: memory is set over and over through the driver's own library, which needs no toolkit ----

def burn():
    """Keeps the first visible GPU busy and 2 GiB of its memory in use, until it is killed."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        code = getattr(cuda, name)(*args)
        if code != 0:
            sys.exit("%s: CUDA error %d" % (name, code))

    size = 2 << 30
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    print("burning", flush=True)
    while True:
        for word in range(100):
            call("cuMemsetD32Async", memory, ctypes.c_uint(word), ctypes.c_size_t(size // 4), None)
        call("cuCtxSynchronize")


def has_cuda():
    """Reports whether this process can load the driver's library for computing."""
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


# ---- what nvidia-smi finds ----

def quoted(words):
    """Returns words as a line for the shell."""
    return " ".join(shlex.quote(w) for w in words)


def text_of(at, *paths):
    """Returns the text of the first of some elements that is there and known."""
    for path in paths:
        found = at.findtext(path)
        if found and found.strip() not in ("N/A", "[N/A]", "Requested functionality has been deprecated"):
            return found.strip()
    return None


def number_of(at, *paths):
    """Returns the number in such a text ("612.00 W")."""
    found = re.match(r"[-0-9.]+", text_of(at, *paths) or "")
    return float(found.group()) if found else None


class Smi:
    """Reads nvidia-smi -q -x."""

    def __init__(self, program, clock):
        self.program, self.clock = program, clock

    def look(self):
        out = self.clock.run([self.program, "-q", "-x"], 60)
        need(out.returncode == 0, "nvidia-smi -q -x: exit code %d: %s" % (out.returncode, out.stdout[-200:].strip()))
        root = xml.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", out.stdout))
        return text_of(root, "driver_version"), [self.gpu(at) for at in root.findall("gpu")]

    @staticmethod
    def gpu(at):
        """Returns what is compared of one GPU, under the names that muster has; None: not known."""
        memory = at.find("fb_memory_usage")
        bus = re.match(r"([0-9A-Fa-f]+):(.*)", text_of(at, "pci/pci_bus_id") or at.get("id") or "")
        uncorrected = [int(e.text) for e in at.findall("ecc_errors/volatile/*")
                       if "uncorrectable" in e.tag and (e.text or "").strip().isdigit()]
        return {
            "uuid": text_of(at, "uuid"), "model": text_of(at, "product_name"), "serial": text_of(at, "serial"),
            "minor": number_of(at, "minor_number"),
            "bus": "%04x:%s" % (int(bus.group(1), 16), bus.group(2).lower()) if bus else None,
            "mem_mb": number_of(memory, "total"),
            "used_mb": (number_of(memory, "used") or 0) + (number_of(memory, "reserved") or 0),
            "mig": text_of(at, "mig_mode/current_mig") == "Enabled",
            "ecc_uncorrected": sum(uncorrected) if uncorrected else None,
            "remapped": number_of(at, "remapped_rows/remapped_row_unc"),
            "util": number_of(at, "utilization/gpu_util"), "temp_c": number_of(at, "temperature/gpu_temp"),
            "power_w": number_of(at, "gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw",
                                 "gpu_power_readings/average_power_draw", "power_readings/power_draw"),
            "procs": {int(p.findtext("pid")): number_of(p, "used_memory")
                      for p in at.findall("processes/process_info")},
        }


# ---- muster ----

class Clock:
    """Runs programs within the time that is left."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def run(self, command, limit, env=None):
        limit = min(limit, self.left())
        need(limit > 1, "the time was up")
        try:
            return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, timeout=limit, env=env)
        except subprocess.TimeoutExpired:
            raise Failed("%s: no answer within %d s" % (quoted(command[:3]), limit))

    def wait(self, what, holds, limit):
        """Waits until holds returns something, and returns that."""
        end = time.monotonic() + min(limit, self.left())
        while True:
            value = holds()
            if value:
                return value
            require(time.monotonic() < end, "waited %d s for %s" % (limit, what))
            time.sleep(0.2)


class Helper:
    """Asks the process that looks at the GPUs for muster, and measures that."""

    def __init__(self, muster, env):
        self.process = subprocess.Popen([muster, "internal", "gpu-helper"], stdin=subprocess.PIPE, env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)

    def ask(self, line, key):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        while True:
            answer = self.process.stdout.readline()
            require(answer, "the GPU helper ended")
            value = json.loads(answer).get(key)
            if value is not None:
                return value

    def cpu(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cost(self, line, key, times):
        """Returns the median of the wall time and the mean of the CPU time of an answer, in ms."""
        before, took = self.cpu(), []
        for _ in range(times):
            begun = time.monotonic()
            self.ask(line, key)
            took.append(1000 * (time.monotonic() - begun))
        return sorted(took)[times // 2], 1000 * (self.cpu() - before) / times

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


class Cluster:
    """Is muster dev on this machine, in a folder of its own."""

    def __init__(self, muster, folder, clock):
        self.muster, self.folder, self.clock, self.process = muster, folder, clock, None
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.page = "127.0.0.1:%d" % s.getsockname()[1]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "MUSTER_"))}
        self.env.update(MUSTER_SOCKET=folder + "/socket", PATH=folder + "/bin:" + os.environ.get("PATH", ""))

    def start(self):
        os.mkdir(self.folder + "/bin")
        for name in ("srun", "sbatch", "scancel", "squeue", "sinfo", "sstat", "scontrol"):
            os.symlink(self.muster, self.folder + "/bin/" + name)
        self.process = subprocess.Popen(
            [self.muster, "dev", "--data", self.folder + "/data", "--socket", self.folder + "/socket", "--node", NODE,
             "--sample-span", "2s", "--http", self.page], env=self.env, stdin=subprocess.DEVNULL,
            stdout=open(self.folder + "/log", "w"), stderr=subprocess.STDOUT)
        self.clock.wait("the node", lambda: re.search(r"^(idle|drain)", self.call("sinfo", "-h", "-o", "%T")), 60)

    def stop(self):
        if self.process is None:
            return
        for job in self.call("squeue", "-h", "-o", "%A").split():
            self.call("scancel", job)
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def call(self, name, *args, limit=60):
        """Returns what a command prints, whether it succeeds or not."""
        program = self.folder + "/bin/" + name if name != "muster" else self.muster
        return self.clock.run([program] + list(args), limit, self.env).stdout

    def job(self, *args):
        """Submits a batch job, waits until it runs, and returns its number."""
        out = self.call("sbatch", "--parsable", "-c1", "--mem=2000", "--chdir", self.folder, *args).strip()
        require(out.isdigit(), "sbatch: " + out)
        def runs():
            return self.call("squeue", "-h", "-j", out, "-o", "%t").strip() == "R"
        self.clock.wait("job %s to run" % out, runs, 30)
        return out

    def ended(self, job):
        self.call("scancel", job)
        self.clock.wait("the end of job " + job, lambda: not self.call("squeue", "-h", "-j", job).strip(), 60)


# ---- the checks: each returns the figures of its line ----

INSIDE = """echo gpus $SLURM_STEP_GPUS; echo visible $CUDA_VISIBLE_DEVICES
for d in /dev/nvidia[0-9]*; do
  [ -c "$d" ] || continue
  if (exec 3<>"$d") 2>/dev/null; then echo open $d; else echo refused $d; fi
done
"$0" -L"""


class Checks:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.clock = Clock(options.limit)
        self.smi = Smi(options.smi, self.clock)
        self.cluster = Cluster(options.muster, folder, self.clock)
        self.driver, self.found, self.scan, self.failed, self.lines = None, [], {}, 0, []
        self.why = "no NVIDIA GPU"

    def line(self, name, check):
        """Runs one check and keeps its line."""
        try:
            result, figures = "ok", check()
        except NotChecked as e:
            result, figures = "not checked", str(e)
        except Exception as e:  # a check that breaks has failed, and the others go on
            result, figures = "FAIL", str(e) if isinstance(e, Failed) else "%s: %s" % (type(e).__name__, e)
            self.failed += 1
        print("%s: %s: %s" % (name, result, figures), flush=True)
        self.lines.append((name, result, re.sub(r"\s+", " ", figures).replace("|", "/")))

    def with_gpus(self, check, least=1):
        """Has a check made only where there are GPUs."""
        def checked():
            need(self.found, self.why)
            need(len(self.found) >= least, "it takes %d GPUs, here is one" % least)
            need(self.cluster.process or check in (self.inventory, self.slices), "muster dev did not start")
            return check()
        return checked

    def run(self):
        self.line("the GPU helper answers", self.helper)
        self.line("nvidia-smi lists GPUs", self.listed)
        self.line("NVML and nvidia-smi -q agree", self.with_gpus(self.inventory))
        self.line("slices (MIG) and nvidia-smi -L agree", self.with_gpus(self.slices))
        self.line("muster dev starts, a job runs", self.begin)
        self.line("the node has all GPUs", self.with_gpus(self.node))
        for name, count in (("1 GPU", 1), ("all", len(self.found))):
            self.line("nvidia-smi -L, CUDA_VISIBLE_DEVICES: a job of " + name,
                      self.with_gpus(lambda n=count: self.own(n)))
        self.line("two jobs have different GPUs", self.with_gpus(self.apart, 2))
        self.line("the fence refuses other GPUs", self.with_gpus(self.fence))
        self.line("samples, metrics and sstat under load", self.with_gpus(self.load))
        self.line("GPU memory is free after a killed job", self.with_gpus(self.cleanup))
        self.line("--container-image with CDI", self.with_gpus(self.container))
        self.line("the cost of a poll", self.with_gpus(self.cost))

    def helper(self):
        h = Helper(self.options.muster, self.cluster.env)
        try:
            self.scan = h.ask("look", "scan")
        finally:
            h.close()
        trouble = self.scan.get("trouble", "")
        require(not trouble or not self.scan.get("bus"), trouble)
        return "%d GPUs, by %s" % (len(self.scan.get("readings") or []), self.scan["source"])

    def listed(self):
        """Reads what all others are compared with."""
        theirs = os.listdir("/proc/driver/nvidia/gpus") if os.path.isdir("/proc/driver/nvidia/gpus") else []
        try:
            self.driver, self.found = self.smi.look()
        except (NotChecked, OSError, xml.ParseError) as e:
            if theirs or self.scan.get("readings"):
                self.why = "nvidia-smi does not list the GPUs"
            raise NotChecked("%s: %s" % (self.why, e))
        return "%d GPUs, driver %s" % (len(self.found), self.driver)

    def inventory(self):
        readings = {r["gpu"]["uuid"]: r for r in self.scan.get("readings") or []}
        wrong = []
        if self.scan.get("driver") != self.driver:
            wrong.append("driver %s, nvidia-smi has %s" % (self.scan.get("driver"), self.driver))
        if self.scan["source"] != "nvml":
            wrong.append("read by %s and not by NVML" % self.scan["source"])
        if set(readings) != {g["uuid"] for g in self.found}:
            wrong.append("GPUs %s, nvidia-smi has %s" % (sorted(readings), sorted(g["uuid"] for g in self.found)))
        compared = 0
        for g in self.found:
            if g["uuid"] in readings:
                count, differ = compare(readings[g["uuid"]], g)
                compared += count
                wrong += differ
        require(not wrong, "; ".join(wrong))
        return "%d GPUs, %d values" % (len(self.found), compared)

    def slices(self):
        need(any(g["mig"] for g in self.found), "no GPU is in MIG mode")
        listed = re.findall(r"UUID: (MIG-[^)]+)\)", self.clock.run([self.options.smi, "-L"], 60).stdout)
        seen = [s["uuid"] for r in self.scan["readings"] for s in r.get("slices") or []]
        require(sorted(listed) == sorted(seen), "muster has %s, nvidia-smi %s" % (seen, listed))
        return "%d slices" % len(seen)

    def begin(self):
        begun = time.monotonic()
        self.cluster.start()
        out = self.cluster.call("srun", "-c1", "--mem=100", "echo", "it runs")
        require(out.strip() == "it runs", out)
        return "%.1f s" % (time.monotonic() - begun)

    def devices(self):
        return [r["gpu"] for r in self.scan["readings"] if not r.get("mig_mode")]

    def node(self):
        out = self.cluster.call("scontrol", "show", "node", NODE)
        gres = re.search(r"Gres=(\S+)", out)
        count = sum(int(n) for n in re.findall(r":(\d+)(?:\(S:[^)]*\))?(?:,|$)", gres.group(1) if gres else ""))
        want = len(self.devices()) + sum(len(r.get("slices") or []) for r in self.scan["readings"])
        require(count == want, "%s, but %d devices were found" % (gres and gres.group(1), want))
        reason = re.search(r"Reason=(.*)", out)
        require("DRAIN" not in out, "drained: " + (reason.group(1) if reason else "no reason"))
        return gres.group(1) + (", " + reason.group(1) if reason else "")

    def inside(self, gpus, *more):
        """Runs INSIDE in a job and returns what it found."""
        need(not any(g["mig"] for g in self.found), "GPUs in MIG mode")
        ask = ["--gpus=%d" % gpus] if gpus else []
        out = self.cluster.call("srun", "-c1", "--mem=500", *ask, *more, "sh", "-c", INSIDE, self.options.smi)
        words = {"gpus": "", "visible": "", "open": [], "refused": []}
        for key, value in re.findall(r"^(gpus|visible|open|refused) (.*)$", out, re.M):
            words[key] = words[key] + [value] if isinstance(words[key], list) else value
        words["listed"] = re.findall(r"UUID: (GPU-[^)]+)\)", out)
        words["own"] = [self.devices()[int(n)] for n in words["gpus"].split(",") if n.isdigit()]
        words["text"] = out
        return words

    def own(self, count):
        w = self.inside(count)
        require(len(w["own"]) == count, "SLURM_STEP_GPUS is %r for %d GPUs: %s" % (w["gpus"], count, w["text"][-300:]))
        uuids = sorted(g["uuid"] for g in w["own"])
        fenced = bool(w["refused"]) or count == len(self.devices()) and bool(w["open"])
        want = uuids if fenced else sorted(g["uuid"] for g in self.devices())
        require(sorted(w["listed"]) == want, "nvidia-smi -L lists %s, the job has %s" % (w["listed"], uuids))
        visible = w["visible"].split(",")
        numbers = [str(n) for n in range(count)] if fenced else w["gpus"].split(",")
        require(visible in (numbers, [g["uuid"] for g in w["own"]]),
                "CUDA_VISIBLE_DEVICES=%s for GPUs %s" % (w["visible"], w["gpus"]))
        return "CUDA_VISIBLE_DEVICES=%s, %d of %d listed%s" % (
            w["visible"], len(w["listed"]), len(self.found), "" if fenced else " (no fence)")

    def apart(self):
        held = self.cluster.job("--gpus=%d" % (len(self.devices()) - 1), "-o", "/dev/null", "--wrap", "sleep 300")
        try:
            taken = self.cluster.call("scontrol", "show", "job", held, "-d")
            w = self.inside(1)
        finally:
            self.cluster.ended(held)
        ids = re.search(r"GRES=gpu[^(]*\(IDX:([^)]*)\)", taken)
        require(ids and len(w["own"]) == 1, "the jobs' GPUs are not told: " + taken[-300:])
        others = set()
        for part in ids.group(1).split(","):
            first, _, last = part.partition("-")
            others |= set(range(int(first), int(last or first) + 1))
        require(int(w["gpus"]) not in others, "both have GPU %s" % w["gpus"])
        return "GPUs %s and %s" % (ids.group(1), w["gpus"])

    def fence(self):
        files = [d for d in glob.glob("/dev/nvidia[0-9]*") if re.search(r"\d$", d)]
        need(files, "no device files /dev/nvidiaN")
        need(os.getuid() == 0, "it takes root")
        for d in files:
            try:
                os.close(os.open(d, os.O_RDWR))
            except OSError as e:
                raise NotChecked("%s cannot be opened outside of jobs either: %s" % (d, e))
        held = re.search(r"jobs held by\s+(.*)", self.cluster.call("muster", "why", NODE))
        kind = held.group(1) if held else "nothing"
        need("devices" in kind, "this machine's cgroups do not let muster fence devices (jobs are held by %s)" % kind)
        none, one = self.inside(0), self.inside(1)
        require(sorted(none["refused"]) == sorted(files), "a job without GPUs opens %s" % none["open"])
        own = ["/dev/nvidia%d" % g["minor"] for g in one["own"]]
        require(one["open"] == own, "a job with %s opens %s" % (own, one["open"]))
        return "%s: a job with 1 GPU opens 1 of %d files, one without opens none" % (kind, len(files))

    def loaded(self):
        """Starts a job that loads one GPU, and returns its number and that GPU as nvidia-smi has it."""
        load = self.options.load
        if not load:
            need(has_cuda(), "no libcuda.so.1 to load a GPU with")
            load = quoted([sys.executable, os.path.abspath(__file__), "--burn"])
        job = self.cluster.job("--gpus=1", "-o", self.folder + "/load", "--wrap", load)
        out = self.cluster.call("scontrol", "show", "job", job, "-d")
        ids = re.search(r"GRES=gpu[^(]*\(IDX:(\d+)\)", out)
        require(ids, "the job's GPU is not told: " + out[-300:])
        return job, self.devices()[int(ids.group(1))]

    def state(self, gpu):
        return next(g for g in self.smi.look()[1] if g["uuid"] == gpu["uuid"])

    def load(self):
        need(not any(g["mig"] for g in self.found), "GPUs in MIG mode")
        job, gpu = self.loaded()
        try:
            self.clock.wait("nvidia-smi to show load", lambda: self.busy(job, gpu), 45)
            from_there, series = time.time(), []
            while time.time() < from_there + self.options.watch:
                series.append(self.state(gpu))
                time.sleep(1)
            self.clock.wait("samples of the job's GPU", lambda: len(self.rows(job, gpu["index"])) >= 2, 20)
            rows = self.rows(job, gpu["index"])
            page = "http://%s/metrics/hardware" % self.cluster.page
            metrics = urllib.request.urlopen(page, timeout=10).read().decode()
            usage = self.cluster.call("sstat", "-nP", "-a", "-j", job, "-o", "tresusageinmax")
        finally:
            self.cluster.ended(job)
        return ", ".join(self.agree(series, rows, metrics, gpu["index"]) + self.tasks(series, usage))

    def busy(self, job, gpu):
        if not self.cluster.call("squeue", "-h", "-j", job).strip():
            with open(self.folder + "/load") as f:
                raise NotChecked("the load ended: " + f.read()[-200:])
        return (self.state(gpu)["util"] or 0) > 20

    def rows(self, job, index):
        """Returns the job's latest samples of a GPU."""
        lines = [line.split(",") for line in self.cluster.call("muster", "samples", "--csv", job).splitlines()]
        rows = [dict(zip(lines[0], line)) for line in lines[1:]]
        rows = [r for r in rows if r.get("gpu") == str(index) and r.get("gpu_util")]
        return rows[-max(2, int(self.options.watch // 4)):]

    @staticmethod
    def agree(series, rows, metrics, index):
        """Compares samples and metrics with what nvidia-smi gave meanwhile."""
        figures, wrong = [], []
        for key, column, metric, unit, slack, name in (
                ("util", "gpu_util", "utilization", 1, 10, "utilization %"),
                ("used_mb", "gpu_mem_mb", "memory_used_bytes", MIB, 100, "memory MB"),
                ("power_w", "gpu_power_w", "power_watts", 1, 10, "power W"),
                ("temp_c", "gpu_temp_c", "temperature_celsius", 1, 4, "temperature C")):
            known = [s[key] for s in series if s[key] is not None]
            sampled = [float(r[column]) for r in rows if r[column]]
            told = re.search(r'^muster_gpu_%s\{node="%s",gpu="%d"\} (\S+)' % (metric, NODE, index), metrics, re.M)
            if not known:
                figures.append("%s not told by nvidia-smi" % name)
                continue
            low, high = min(known) * 0.85 - slack, max(known) * 1.15 + slack
            values = [sum(sampled) / len(sampled) if sampled else None, float(told.group(1)) / unit if told else None]
            if any(v is None or not low <= v <= high for v in values):
                wrong.append("%s: samples %s, metrics %s, nvidia-smi %g to %g" % (
                    name, values[0], values[1], min(known), max(known)))
            else:
                figures.append("%s %.0f (nvidia-smi %g to %g)" % (name, values[0], min(known), max(known)))
        require(not wrong, "; ".join(wrong))
        return figures

    @staticmethod
    def tasks(series, usage):
        """Compares what sstat has of the job's processes with what nvidia-smi has of all."""
        procs = [m for m in series[-1]["procs"].values() if m]
        if not procs:
            return ["sstat not checked: nvidia-smi lists no processes"]
        found = re.search(r"gres/gpumem=([0-9.]+)([KMG]?)", usage)
        require(found, "sstat has no gres/gpumem: " + usage)
        mem = float(found.group(1)) * {"": 1 / MIB, "K": 1 / 1024, "M": 1, "G": 1024}[found.group(2)]
        require(any(abs(mem - p) <= 64 + p / 20 for p in procs), "sstat: gpumem %d MB, nvidia-smi: %s" % (mem, procs))
        return ["sstat gpumem %d MB" % mem]

    def cleanup(self):
        need(not any(g["mig"] for g in self.found), "GPUs in MIG mode")
        job, gpu = self.loaded()
        before = next(g for g in self.found if g["uuid"] == gpu["uuid"])["used_mb"]
        try:
            self.clock.wait("the load to take memory", lambda: self.state(gpu)["used_mb"] > before + 300, 45)
            most, begun = self.state(gpu)["used_mb"], time.monotonic()
            self.cluster.call("scancel", "--signal=KILL", "--full", job)
        finally:
            self.cluster.ended(job)
        took = time.monotonic() - begun
        for _ in range(20):  # a driver frees memory a moment after the process is gone
            after = self.state(gpu)["used_mb"]
            if after <= before + 300:
                break
            time.sleep(0.5)
        require(after <= before + 300, "%d MB before the job, %d MB after it" % (before, after))
        state = self.cluster.call("sinfo", "-h", "-N", "-o", "%t %E").strip()
        require(state.startswith("idle"), "the node is left %s" % state)
        return "%d MB, %d MB, %d MB before, during and after; over after %.1f s" % (before, most, after, took)

    def container(self):
        need(os.getuid() == 0, "it takes root")
        files = [f for d in ("/etc/cdi", "/var/run/cdi") for f in glob.glob(d + "/*")
                 if f.endswith((".yaml", ".yml", ".json")) and "nvidia.com/gpu" in open(f).read()]
        need(files, "no file for nvidia.com/gpu in /etc/cdi or /var/run/cdi (nvidia-ctk cdi generate)")
        root = image(self.folder, [self.options.smi])
        out = self.cluster.call("srun", "-c1", "--mem=500", "--gpus=1", "--container-image=" + root, "nvidia-smi", "-L",
                                limit=60)
        listed = re.findall(r"UUID: (GPU-[^)]+)\)", out)
        known = {g["uuid"] for g in self.found}
        require(listed and set(listed) <= known, "nvidia-smi -L in the container: " + out[-300:])
        return "%s: nvidia-smi -L lists %d" % (files[0], len(listed))

    def cost(self):
        h = Helper(self.options.muster, self.cluster.env)
        try:
            h.ask("look", "scan")  # the first one loads the library
            look, sample = h.cost("look", "scan", 10), h.cost("sample", "loads", 20)
        finally:
            h.close()
        require(look[0] < 5000 and sample[0] < 2000, "a look takes %d ms, a sample %d ms" % (look[0], sample[0]))
        return "look %.1f ms (CPU %.1f ms), sample %.1f ms (CPU %.1f ms)" % (look + sample)

    def table(self):
        """Prints the record for docs/hardware.md."""
        cards = sorted({g["model"] for g in self.found})
        cgroup = "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1"
        version = self.clock.run([self.options.muster, "--version"], 20).stdout.strip() if self.clock.left() > 1 else ""
        print("\n%s, driver %s, Linux %s, cgroup %s, %s, %s\n" % (
            "%d x %s" % (len(self.found), ", ".join(cards)) if cards else "no NVIDIA GPU", self.driver or "none",
            platform.release(), cgroup, version, time.strftime("%Y-%m-%d")))
        if os.environ.get("STANDIN_NVML"):
            print("Made with a stand-in for NVML: no record of a real GPU.\n")
        print("| check | result | figures |\n|---|---|---|")
        for row in self.lines:
            print("| %s | %s | %s |" % row)


def compare(reading, g):
    """Compares one GPU as muster has it with nvidia-smi's; returns how many values, and those that differ."""
    own = reading["gpu"]
    exact = {"model": own.get("model"), "serial": reading.get("serial"), "minor": own.get("minor"),
             "bus": own.get("pci"), "mem_mb": own.get("mem_mb"), "mig": reading.get("mig_mode", False),
             "ecc_uncorrected": reading.get("ecc_uncorrected", 0), "remapped": reading.get("remapped_bad", 0)}
    near = {"used_mb": (reading.get("mem_used_mb", 0), 700), "temp_c": (reading.get("temp_c", 0), 6),
            "power_w": (reading.get("power_mw", 0) / 1000, 10 + (g["power_w"] or 0) / 4)}
    exact = {k: v for k, v in exact.items() if g[k] is not None}
    near = {k: v for k, v in near.items() if g[k] is not None}
    wrong = [(k, v) for k, v in exact.items() if v != g[k]]
    wrong += [(k, v) for k, (v, slack) in near.items() if abs(v - g[k]) > slack]
    return len(exact) + len(near), ["%s: %s is %s, nvidia-smi has %s" % (g["uuid"], k, v, g[k]) for k, v in wrong]


def image(folder, programs):
    """Makes the root of a container of this machine's shell and what it and some programs load."""
    root = folder + "/image"
    for d in ("dev", "proc", "sys", "tmp", "etc", "bin", "usr/bin"):
        os.makedirs(os.path.join(root, d))
    names = [("/bin/sh", "/bin/sh")]
    for program in ["/bin/sh"] + programs:
        out = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             universal_newlines=True)
        names += [(p, p) for p in re.findall(r"(/\S+) \(0x", out.stdout)]
    for source, target in names:
        target = root + target
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.realpath(source), target)
    return root


def unpack(packed, folder):
    """Returns the program, which is unpacked into a folder if it is packed."""
    opener = {".xz": lzma.open, ".gz": gzip.open}.get(os.path.splitext(packed)[1])
    if opener is None:
        return os.path.abspath(packed)
    with opener(packed) as source, open(folder + "/muster", "wb") as target:
        shutil.copyfileobj(source, target)
    os.chmod(folder + "/muster", 0o755)
    return folder + "/muster"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = (glob.glob(here + "/muster.[xg]z") or [here + "/muster.xz"])[0]
    p.add_argument("muster", nargs="?", default=beside, help="the program, packed or not")
    p.add_argument("--smi", default="nvidia-smi", help="nvidia-smi, if it is not in PATH")
    p.add_argument("--load", default="", help="a command that loads a job's GPU until it is killed")
    p.add_argument("--watch", type=float, default=20, help="seconds that the load is watched (20)")
    p.add_argument("--limit", type=float, default=450, help="seconds that all checks take at most (450)")
    p.add_argument("--burn", action="store_true", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.burn:
        return burn()
    options.smi = shutil.which(options.smi) or options.smi
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the cluster is stopped
    folder = tempfile.mkdtemp(prefix="gpu-check-")
    try:
        os.chmod(folder, 0o755)
        options.muster = unpack(options.muster, folder)
        checks = Checks(options, folder)
        try:
            checks.run()
            checks.table()
        finally:
            checks.clock.end = time.monotonic() + 25  # what is left of the eight minutes is for this
            checks.cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
