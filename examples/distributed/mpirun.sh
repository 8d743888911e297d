#!/bin/sh
# Two ranks by mpirun of Open MPI. Arguments are parameters and flags of primus train:
#
#   examples/distributed/mpirun.sh train_iters=100
#
# On several machines add --host node1:8,node2:8 to MPIRUN_ARGS. They need this directory, the
# corpus and the workspace under the same paths.
set -e
exec mpirun -np "${RANKS:-2}" --bind-to none ${MPIRUN_ARGS:-} \
    "${PRIMUS:-bin/primus}" train pretrain --config "${CONFIG:-examples/native/configs/llama_2M-pretrain.yaml}" "$@"
