package mpi_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi"
)

// BenchmarkRanks needs the same number of calls on all ranks, and so a fixed one:
//
//	go test -c -o mpi.test ./vendors/mpi
//	PRIMUS_MPI_TEST_VENDOR=openmpi mpirun -np 2 ./mpi.test -test.run=^$ -test.bench=Ranks -test.benchtime=100x
func BenchmarkRanks(b *testing.B) {
	if os.Getenv(inRank) == "" {
		b.Skip("runs only as a rank of a job")
	}
	g, lib := rank(b)
	x := opregistry.NewExec(nil, 0)
	allReduce, reduceScatter, allGather := runOf(lib, collective.AllReduce), runOf(lib, collective.ReduceScatter), runOf(lib, collective.AllGather)
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		for _, bytes := range []int{1 << 10, 1 << 20, 3 << 20, 16 << 20} {
			vector := func(n int) *tensor.Tensor {
				t, err := tensor.FromBytes(make([]byte, n), d, n/d.Size())
				if err != nil {
					b.Fatal(err)
				}
				return t
			}
			all, part := vector(bytes), vector(bytes/g.Ranks)
			for _, op := range []struct { // in the same order on all ranks
				name string
				call func() error
			}{
				{"all_reduce", func() error { return allReduce(x, collective.AllReduceArgs{Input: all, Output: all, Group: g}) }},
				{"reduce_scatter", func() error {
					return reduceScatter(x, collective.ReduceScatterArgs{Input: all, Output: part, Group: g})
				}},
				{"all_gather", func() error { return allGather(x, collective.AllGatherArgs{Input: part, Output: all, Group: g}) }},
			} {
				b.Run(fmt.Sprintf("%s/%v/%dKiB", op.name, d, bytes>>10), func(b *testing.B) {
					b.SetBytes(int64(bytes))
					b.ReportAllocs()
					for range b.N { // Loop would end after a time, at another count on each rank
						if err := op.call(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// runOf returns the function of the impl of the library that this process was started for.
func runOf[A any](lib *mpi.Library, op *opregistry.Op[A]) opregistry.Func[A] {
	for _, i := range lib.Source().Impls {
		if i.Op == opregistry.Handle(op) && i.Vendor == os.Getenv(inRank) {
			return i.Run.(opregistry.Func[A])
		}
	}
	return nil
}
