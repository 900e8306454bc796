#!/bin/bash
# A cluster of eight hollow 8-GPU nodes on this machine, and a few jobs on it. Called by make quickstart.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
data=${MUSTER_QUICKSTART_DIR:-${TMPDIR:-/tmp}/muster-quickstart-$(id -u)}
export MUSTER_SOCKET=$data/muster.sock PATH=$root/bin:$PATH
mkdir -p "$data"

stop() { # ends the daemon that an earlier quick start left, by its pid file
  [ -s "$data/pid" ] && kill "$(cat "$data/pid")" 2>/dev/null || true
}
if [ "${1:-}" = stop ]; then
  scancel --me --quiet 2>/dev/null || true
  stop; rm -rf "$data"; echo "stopped, $data removed"; exit 0
fi

if ! squeue >/dev/null 2>&1; then
  muster dev --data "$data" --socket "$MUSTER_SOCKET" --hollow 8x16c64g8gpu:h100 --hollow-exec >"$data/log" 2>&1 &
  echo $! >"$data/pid"
  disown
fi
for _ in $(seq 200); do sinfo -h -t idle 2>/dev/null | grep -q idle && break; sleep 0.05; done

cd "$data"
say() { printf '\n$ %s\n' "$*"; "$@"; }
say sinfo
say sbatch "$here/train.sbatch"
say sbatch "$here/sweep.sbatch"
first=$(sbatch --parsable --job-name=prepare --output=/dev/null --wrap='sleep 1')
say sbatch --dependency=afterok:"$first" --job-name=evaluate --output=/dev/null --wrap='echo evaluated'
say squeue
say srun --nodes=2 --gpus-per-node=4 -l sh -c 'echo "$(hostname) sees GPUs $CUDA_VISIBLE_DEVICES"'
echo; echo "waiting for the jobs to end ..."
for _ in $(seq 300); do [ -z "$(squeue -h)" ] && break; sleep 0.1; done
say squeue
say sacct -X --format=JobID%-14,JobName%-10,AllocTRES%48,State,ExitCode,Elapsed
echo; cat "$data"/train-*.out
cat <<T

The cluster goes on running. Use it from this shell:
  export MUSTER_SOCKET=$MUSTER_SOCKET PATH=$root/bin:\$PATH
Stop it and remove its data:
  $here/quickstart.sh stop
T
