package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/openblas"
)

// bench holds what the cases of one number of threads share.
type bench struct {
	threads int
	now     clock
	pool    *parallel.Pool
	exec    *opregistry.Exec
	flagos  opregistry.Source
	blas    *openblas.Library
	torch   *torch
	rng     *rand.Rand
}

func newBench(threads int, now clock) *bench {
	pool := parallel.New(threads)
	return &bench{
		threads: threads, now: now, pool: pool, exec: opregistry.NewExec(pool, 0), flagos: flagos.Source(),
		blas: openblas.New(openblas.Options{Threads: threads}), torch: &torch{threads: threads},
		rng: rand.New(rand.NewPCG(1, 1)),
	}
}

func (b *bench) close() {
	b.torch.close()
	b.pool.Close()
}

// implOf returns the impl of an op.
func implOf[A any](s opregistry.Source, op *opregistry.Op[A]) opregistry.Func[A] {
	for _, i := range s.Impls {
		if i.Op == opregistry.Handle(op) {
			return i.Run.(opregistry.Func[A])
		}
	}
	panic(fmt.Sprintf("BUG: source %s has no impl of %s", s.Name, op.Name()))
}

// floats makes a dense tensor of values that stay in range however often an op runs over them.
func (b *bench) floats(shape ...int) *tensor.Tensor {
	values := make([]float32, tensor.Shape(shape).NumElements())
	for i := range values {
		values[i] = b.rng.Float32()
	}
	return dense(values, shape...)
}

// indexes makes n indexes below limit.
func (b *bench) indexes(n, limit int) *tensor.Tensor {
	values := make([]int32, n)
	for i := range values {
		values[i] = b.rng.Int32N(int32(limit))
	}
	return dense(values, n)
}

func dense[T tensor.Element](values []T, shape ...int) *tensor.Tensor {
	x, err := tensor.FromSlice(values, shape...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return x
}
