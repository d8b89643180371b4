#!/bin/bash
# Trains on the nodes of a Slurm job; the flags are those of experiments.train:
#   sbatch experiments/deploy/slurm.sh --method=hdafl --dataset=cifar10 --output_dir=runs/slurm
# Run it in a checkout that all nodes see, with the extra ray installed. Not tried on a Slurm cluster.
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
set -euo pipefail
export RAY_USAGE_STATS_ENABLED=0
# Ray starts on all nodes and the program on the first one; Ray ends with it.
srun .venv/bin/ray symmetric-run --address="$(hostname):6379" --min-nodes="$SLURM_NNODES" \
  --num-cpus="$SLURM_CPUS_PER_TASK" --include-dashboard=false -- \
  env RAY_ADDRESS="$(hostname):6379" .venv/bin/python -m experiments.train --runtime=ray "$@"
