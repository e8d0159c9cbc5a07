#!/usr/bin/env bash
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@180
# job.sh COMMAND...: one element of a Slurm job array; {} in the command is its number. Three minutes before the time
# limit, or when preempted, zsq gets SIGTERM, saves its state and exits with 75: the element is queued again and
# goes on where it was.
set -uo pipefail
srun -- "${@//\{\}/$SLURM_ARRAY_TASK_ID}"
status=$?
if [[ $status -eq 75 ]]; then
  echo "job: stopped with its state saved; queued again" >&2
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit $status
