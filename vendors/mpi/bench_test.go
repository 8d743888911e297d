package mpi_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
)

// BenchmarkAllReduce needs the same number of calls on all ranks, and so a fixed one:
//
//	go test -c -o mpi.test ./vendors/mpi
//	PRIMUS_MPI_TEST_VENDOR=openmpi mpirun -np 2 ./mpi.test -test.run=^$ -test.bench=AllReduce -test.benchtime=100x
func BenchmarkAllReduce(b *testing.B) {
	if os.Getenv(inRank) == "" {
		b.Skip("runs only as a rank of a job")
	}
	g, lib := rank(b)
	run := func(*opregistry.Exec, collective.AllReduceArgs) error { return nil }
	for _, i := range lib.Source().Impls {
		if i.Op == opregistry.Handle(collective.AllReduce) && i.Vendor == os.Getenv(inRank) {
			run = i.Run.(opregistry.Func[collective.AllReduceArgs])
		}
	}
	x := opregistry.NewExec(nil, 0)
	for _, bytes := range []int{4, 4 << 10, 1 << 20, 16 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", bytes>>10), func(b *testing.B) {
			t, err := tensor.FromSlice(make([]float32, bytes/4), bytes/4)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for range b.N { // Loop would end after a time, at another count on each rank
				if err := run(x, collective.AllReduceArgs{Input: t, Output: t, Group: g}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
