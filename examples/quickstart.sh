#!/bin/bash
# A cluster of eight hollow 8-GPU nodes on this machine, with jobs on it that run, wait, end and fail.
# Called by make quickstart.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
data=${MUSTER_QUICKSTART_DIR:-${TMPDIR:-/tmp}/muster-quickstart-$(id -u)}
export MUSTER_SOCKET=$data/muster.sock PATH=${MUSTER_QUICKSTART_BIN:-$root/bin}:$PATH
mkdir -p "$data"

stop() { # ends the daemon that an earlier quick start left, by its pid file, and waits until it has closed its files
  [ -s "$data/pid" ] || return 0
  local pid
  pid=$(cat "$data/pid")
  kill "$pid" 2>/dev/null || return 0
  for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
}
if [ "${1:-}" = stop ]; then
  squeue -h -o %A 2>/dev/null | sort -u | xargs -r scancel --quiet || true
  for _ in $(seq 100); do [ -z "$(squeue -h 2>/dev/null)" ] && break; sleep 0.1; done
  stop; rm -rf "$data"; echo "stopped, $data removed"; exit 0
fi

free() { ! (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
if ! squeue >/dev/null 2>&1; then
  for page in 7480 7481 7482 7483 7484 7485; do free $page && break; done
  echo "http://127.0.0.1:$page/" >"$data/page"
  muster dev --data "$data" --socket "$MUSTER_SOCKET" --http 127.0.0.1:$page \
    --hollow 8x16c64g8gpu:h100 --hollow-exec --hollow-load --hollow-history 24h >"$data/log" 2>&1 &
  echo $! >"$data/pid"
  disown
fi
for _ in $(seq 200); do sinfo -h -t idle 2>/dev/null | grep -q idle && break; sleep 0.05; done
for _ in $(seq 200); do [ -n "$(sacct -anX -S now-1days 2>/dev/null)" ] && break; sleep 0.05; done

cd "$data"
say() { printf '\n$ %s\n' "$*"; "$@"; }
quiet() { sbatch --parsable --time=1:00:00 "$@"; }
say sinfo
say sbatch "$here/train.sbatch"
say sbatch "$here/sweep.sbatch"
first=$(quiet --job-name=prepare --output=/dev/null --wrap='sleep 1')
say sbatch --dependency=afterok:"$first" --job-name=evaluate --output=/dev/null --wrap='echo evaluated'
say squeue
say srun --nodes=2 --gpus-per-node=4 -l sh -c 'echo "$(hostname) sees GPUs $CUDA_VISIBLE_DEVICES"'
echo; echo "waiting for these jobs to end ..."
for _ in $(seq 600); do [ -z "$(squeue -h)" ] && break; sleep 0.1; done
say sacct -X -u "$(id -un)" --format=JobID%-14,JobName%-10,AllocTRES%48,State,ExitCode,Elapsed
echo; cat "$data"/train-*.out

# What is worth looking at: one that runs and writes, an array, one that failed, one that waits.
other=(); [ "$(id -u)" != 0 ] || other=(--uid=nobody --chdir=/tmp)
runs=$(quiet --job-name=pretrain --nodes=4 --gpus-per-node=8 --output=%x-%j.out --wrap \
  'for step in $(seq 100000); do echo "step $step loss $((9000 / (step + 30)))"; sleep 1; done')
quiet --job-name=tune --array=0-11%4 --gpus=2 "${other[@]}" --output=/dev/null --wrap='sleep 900' >/dev/null
fails=$(quiet --job-name=broken --gpus=1 --output=%x-%j.out --wrap \
  'echo "loading checkpoint"; echo "FileNotFoundError: checkpoint.pt" >&2; exit 1')
waits=$(quiet --job-name=wide --nodes=8 --gpus-per-node=8 --output=/dev/null --wrap='sleep 60')
for _ in $(seq 100); do [ -z "$(squeue -h -j "$fails" -t PD,R,CF,CG 2>/dev/null)" ] && break; sleep 0.1; done
say squeue
say muster why "$waits"
say muster why "$fails"
cat <<T

The cluster goes on running. Its page: $(cat "$data/page")
The jobs before those above are made up: a day of five users, as cluster "simulated".
Use it from this shell:
  export MUSTER_SOCKET=$MUSTER_SOCKET PATH=$root/bin:\$PATH
Three things to try:
  muster logs -f $(printf %-9s "$runs") what a job writes, as it writes it
  muster top               all of it live: w says why, l shows the log, c cancels
  muster ui                a link to the page by which you may act there
Stop it and remove its data:
  $here/quickstart.sh stop
T
