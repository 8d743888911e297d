// Package mpi serves the collectives of a job with the MPI library that is installed, which is
// loaded while the program runs.
//
// # Concepts
//
// A Library belongs to one process of a job that an MPI launcher has started: mpirun or mpiexec of
// Open MPI, or hydra, the mpiexec of MPICH. The launcher leaves variables in the environment, which
// say which one it was, and so which library the job uses. A process without them is not part of a
// job: the impls are not available there, and nothing is loaded.
//
// The library is loaded when an impl is first asked whether it is available, and MPI is initialised
// by Meet, which says for whom it waits and can be interrupted, or by the first call. From then on
// the process has to end with Close, in which all ranks take part, or with an exit code that is not
// 0, after which the launcher ends the other ranks. The ranks also send each other signs of life,
// by the first one, so that they can say which of them is gone.
//
// The impls are vendor.openmpi, vendor.mpich and vendor.mpi_abi. The libraries have the same
// functions and nothing else in common: the handles of Open MPI are addresses, those of MPICH are
// numbers, and those of the ABI that MPI 5 defines for all libraries are other numbers.
//
// # Memory
//
// Operands are passed to the library where they are, and large ones of all_reduce in pieces that
// stay in the caches when all ranks are on one machine, where the parts of reduce_scatter are also
// reduced here, in scratch memory of the Exec. Elements of bf16 and f16, which MPI does
// not know, are sent as bytes: each rank receives a part of those of all, reduces it in f32 in the
// order of the ranks, and sends it to the others. That takes half of the bytes of f32, and scratch
// memory of the Exec.
//
// # Concurrency
//
// All calls of the library come from one OS thread, in the order in which the ops are called. Calls
// from several goroutines wait for each other; their order must be the same on all ranks.
//
// # Errors
//
// Where the library is missing or is not what it should be, the impls are not available and say
// why. A failing function of the library is an error with its name and the text that the library
// has for it.
package mpi
