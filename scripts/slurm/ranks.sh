#!/usr/bin/env bash
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@180
# sbatch --ntasks=8 --gpus-per-task=1 ranks.sh zsq quantize MODEL -o FOLDER --resume [FLAG...]: one run on all tasks of
# the job, which share each batch (docs/cli.md, "More than one process"). The folder lies where all nodes see it.
# Three minutes before the time limit, or when preempted, every task gets SIGTERM; they stop at the same iteration with
# their state saved and exit with 75: the job is queued again and goes on where it was. SRUN_MPI=<kind> if this
# cluster's MPI starts by another interface than pmix (`srun --mpi=list`).
set -uo pipefail
srun --mpi="${SRUN_MPI:-pmix}" -- "$@"
status=$?
if [[ $status -eq 75 ]]; then
  echo "ranks: stopped with its state saved; queued again" >&2
  scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $status
