#!/usr/bin/env bash
# Swaps tensorflow-cpu for the GPU build of the same version in the project's environment.
# TFF's own worker (`--runtime=worker`) has no CUDA: the GPU serves what runs in this process.
# Afterwards run with `uv run --no-sync ...`, since a sync would swap back.
set -euo pipefail
cd "$(dirname "$0")/.."
uv sync --locked
uv pip uninstall tensorflow-cpu
# TensorFlow's extra `and-cuda` without TensorRT, which is not on PyPI.
# Without the configuration, whose overrides leave the GPU build out.
uv pip install --no-config --no-deps tensorflow==2.14.1 \
  nvidia-cublas-cu11==11.11.3.6 nvidia-cuda-cupti-cu11==11.8.87 nvidia-cuda-nvcc-cu11==11.8.89 \
  nvidia-cuda-nvrtc-cu11==11.8.89 nvidia-cuda-runtime-cu11==11.8.89 nvidia-cudnn-cu11==8.7.0.84 \
  nvidia-cufft-cu11==10.9.0.58 nvidia-curand-cu11==10.3.0.86 nvidia-cusolver-cu11==11.4.1.48 \
  nvidia-cusparse-cu11==11.7.5.86 nvidia-nccl-cu11==2.16.5
uv run --no-sync python -c "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))"
