package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/clblast"
	vendorsopencl "github.com/primus-fl/primus/vendors/opencl"
)

// bench holds what the cases share.
type bench struct {
	backend                 *opencl.Backend
	device                  *opencl.Device
	pool                    *parallel.Pool
	exec                    *opregistry.Exec
	flagos, opencl, clblast opregistry.Source
	noCLBlast               error
	rng                     *rand.Rand
}

// benchCase is work that every contender does with the same operands.
type benchCase struct {
	name  string
	work  float64 // floating-point operations, or bytes
	unit  string  // of the rates, in thousand millions per second
	sides []side
	owned []*tensor.Tensor // on the device
}

// side is a contender. One that is absent has a reason.
type side struct {
	name   string
	call   func() error
	absent error
}

func newBench(backend *opencl.Backend, index int) (*bench, error) {
	d, err := backend.Of(index)
	if err != nil {
		return nil, err
	}
	lib := clblast.New(clblast.Options{})
	pool := parallel.New(runtime.GOMAXPROCS(0))
	return &bench{
		backend: backend, device: d, pool: pool, exec: opregistry.NewExec(pool, 0), flagos: flagos.Source(), opencl: vendorsopencl.Source(),
		clblast: lib.Source(), noCLBlast: lib.Available(), rng: rand.New(rand.NewPCG(1, 1)),
	}, nil
}

func (b *bench) close() {
	b.pool.Close()
	_ = b.backend.Close() // the figures are known
}

func (c *benchCase) close() error {
	var errs []error
	for _, t := range c.owned {
		errs = append(errs, t.Release())
	}
	return errors.Join(errs...)
}

// flops is the unit of cases whose work is arithmetic.
const flops = "GFLOP/s"

// cases returns the products and the attention of training steps of 1,024 tokens, 2,048 of the
// larger model, and the ops that memory bounds.
func (b *bench) cases() []benchCase {
	var all []benchCase
	for _, m := range []struct {
		name                                           string
		tokens, seq, hidden, ffn, heads, groups, vocab int
	}{
		{"llama_2M", 1024, 256, 192, 512, 6, 2, 256},
		{"llama_6M", 2048, 256, 288, 768, 6, 6, 512},
	} {
		dim := m.hidden / m.heads
		for _, l := range []struct {
			name    string
			in, out int
		}{
			{"qkv", m.hidden, m.hidden + 2*m.groups*dim}, {"proj", m.hidden, m.hidden},
			{"fc1", m.hidden, 2 * m.ffn}, {"fc2", m.ffn, m.hidden}, {"output", m.hidden, m.vocab},
		} {
			all = append(all,
				b.product(m.name+"/"+l.name+"/forward", m.tokens, l.out, l.in, true, false),
				b.product(m.name+"/"+l.name+"/input", m.tokens, l.in, l.out, false, false),
				b.product(m.name+"/"+l.name+"/weight", l.out, l.in, m.tokens, false, true))
		}
		all = append(all, b.causal(m.name, m.tokens/m.seq, m.seq, m.heads, m.groups, dim)...)
	}
	return append(all, b.memoryCases()...)
}

// product is one product of m×n by k.
func (b *bench) product(name string, m, n, k int, transA, transB bool) benchCase {
	c := benchCase{name: name, unit: flops, work: 2 * float64(m) * float64(n) * float64(k)}
	shape := func(rows, cols int, trans bool) []int {
		if trans {
			return []int{cols, rows}
		}
		return []int{rows, cols}
	}
	host := gemm.GenericGemmArgs{A: b.floats(shape(k, n, transA)...), TransA: transA, B: b.floats(shape(m, k, transB)...), TransB: transB, D: b.floats(m, n)}
	onDevice := host
	onDevice.A, onDevice.B, onDevice.D = b.put(&c, host.A), b.put(&c, host.B), b.put(&c, host.D)
	c.sides = []side{
		onQueue(b, "opencl", b.opencl, gemm.GenericGemm, onDevice, onDevice.D, nil),
		onQueue(b, "clblast", b.clblast, gemm.GenericGemm, onDevice, onDevice.D, b.noCLBlast),
		{name: "flagos", call: func() error { return implOf(b.flagos, gemm.GenericGemm)(b.exec, host) }},
	}
	return c
}

// causal is causal attention, forward and backward, with the work for the keys that queries see.
func (b *bench) causal(name string, batch, seq, heads, groups, dim int) []benchCase {
	pairs := float64(batch*heads) * float64(seq) * float64(seq+1) / 2
	forward := benchCase{name: name + "/attention/forward", unit: flops, work: 4 * pairs * float64(dim)}
	backward := benchCase{name: name + "/attention/backward", unit: flops, work: 10 * pairs * float64(dim)}
	q, k, v := b.floats(batch, seq, heads, dim), b.floats(batch, seq, groups, dim), b.floats(batch, seq, groups, dim)
	host := attention.FusedAttnBwdArgs{
		Q: q, K: k, V: v, O: b.floats(batch, seq, heads, dim), DO: b.floats(batch, seq, heads, dim), Stats: b.floats(batch, heads, seq, 1),
		DQ: b.floats(batch, seq, heads, dim), DK: b.floats(batch, seq, groups, dim), DV: b.floats(batch, seq, groups, dim),
		QKVFormat: attention.BSHD, AttnMaskType: attention.CausalMask, Saved: &opregistry.Saved{},
	}
	onDevice := host
	for _, t := range []**tensor.Tensor{
		&onDevice.Q, &onDevice.K, &onDevice.V, &onDevice.O, &onDevice.DO, &onDevice.Stats, &onDevice.DQ, &onDevice.DK, &onDevice.DV,
	} {
		*t = b.put(&backward, *t)
	}
	forward.sides = []side{
		onQueue(b, "opencl", b.opencl, attention.FusedAttnFwd, onDevice.Fwd(), onDevice.O, nil),
		{name: "flagos", call: func() error { return implOf(b.flagos, attention.FusedAttnFwd)(b.exec, host.Fwd()) }},
	}
	backward.sides = []side{
		onQueue(b, "opencl", b.opencl, attention.FusedAttnBwd, onDevice, onDevice.DV, nil),
		{name: "flagos", call: func() error { return implOf(b.flagos, attention.FusedAttnBwd)(b.exec, host) }},
	}
	return []benchCase{forward, backward}
}

// onQueue is a side that calls an impl on the device and waits for a result.
func onQueue[A any](b *bench, name string, s opregistry.Source, op *opregistry.Op[A], args A, result *tensor.Tensor, absent error) side {
	if absent != nil {
		return side{name: name, absent: absent}
	}
	run, one := implOf(s, op), make([]byte, 4)
	return side{name: name, call: func() error {
		if err := run(b.exec, args); err != nil {
			return err
		}
		return b.backend.CopyOut(one, result.Pointer(), device.DefaultStream)
	}}
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

// floats makes a tensor in host memory.
func (b *bench) floats(shape ...int) *tensor.Tensor {
	values := make([]float32, tensor.Shape(shape).NumElements())
	for i := range values {
		values[i] = b.rng.Float32() - 0.5
	}
	return onHost(values, shape...)
}

// put copies a tensor to the device, where the case owns it.
func (b *bench) put(c *benchCase, t *tensor.Tensor) *tensor.Tensor {
	x, err := tensor.New(b.backend, t.DType(), t.Shape()...)
	if err == nil {
		err = x.CopyFrom(t)
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	c.owned = append(c.owned, x)
	return x
}
