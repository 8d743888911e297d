package flagos_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// maker makes the operands of one call. Two makers with the same seed make the same operands.
type maker struct {
	t      testing.TB
	rng    *rand.Rand
	dtype  tensor.DType // of what an op stores in the dtype of its choice
	big    bool         // enough work for many parts
	short  bool         // never enough work for several parts
	guards []func(tensortest.TB)
}

func newMaker(t testing.TB, seed uint64, big bool) *maker {
	return newMakerOf(t, tensor.F32, seed, big)
}

func newMakerOf(t testing.TB, d tensor.DType, seed uint64, big bool) *maker {
	return &maker{t: t, rng: rand.New(rand.NewPCG(seed, 7)), dtype: d, big: big}
}

// size draws the length of an axis: at most small, or about large when the call should be big.
func (m *maker) size(small, large int) int {
	if m.big {
		return large - m.rng.IntN(3)
	}
	return 1 + m.rng.IntN(small)
}

func (m *maker) coin() bool { return m.rng.IntN(2) == 0 }

// out makes a tensor between guard bands, sometimes with gaps between its rows.
func (m *maker) out(shape ...int) *tensor.Tensor {
	make := tensortest.Guarded
	if len(shape) > 1 && m.coin() {
		make = tensortest.GuardedStrided
	}
	return m.keep(make(m.t, m.dtype, shape...))
}

// stored makes a dense tensor.
func (m *maker) stored(shape ...int) *tensor.Tensor { return m.dense(m.dtype, shape...) }

// mixed makes a dense tensor that is sometimes f32, whatever the others are.
func (m *maker) mixed(shape ...int) *tensor.Tensor {
	if m.coin() {
		return m.dense(tensor.F32, shape...)
	}
	return m.stored(shape...)
}

func (m *maker) dense(d tensor.DType, shape ...int) *tensor.Tensor {
	return m.keep(tensortest.Guarded(m.t, d, shape...))
}

func (m *maker) keep(x *tensor.Tensor, check func(tensortest.TB)) *tensor.Tensor {
	m.guards = append(m.guards, check)
	return x
}

// fill stores normally distributed values.
func (m *maker) fill(x *tensor.Tensor) *tensor.Tensor {
	values := make([]float64, x.NumElements())
	for i := range values {
		values[i] = m.rng.NormFloat64()
	}
	require.NoError(m.t, x.SetFloat64s(values))
	return x
}

// indexes makes n integers in [0, limit), of either dtype, some of them ignored.
func (m *maker) indexes(n, limit, ignored int) *tensor.Tensor {
	d := tensor.I32
	if m.coin() {
		d = tensor.I64
	}
	x := m.dense(d, n)
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(m.rng.IntN(limit))
		if ignored < 0 && m.rng.IntN(5) == 0 {
			values[i] = float64(ignored)
		}
	}
	require.NoError(m.t, x.SetFloat64s(values))
	return x
}

// subject is one op with a function that makes calls of it.
type subject interface {
	name() string
	// differ compares a random call with the reference.
	differ(t *testing.T, d tensor.DType, seed uint64)
	// same compares a big call on several pools bit for bit.
	same(t *testing.T, d tensor.DType)
	// allocs returns the allocations of a big call on a pool.
	allocs(t *testing.T, d tensor.DType, pool opregistry.Pool) float64
}

type subjectOf[A any] struct {
	op    *opregistry.Op[A]
	build func(m *maker) A
	tol   tensortest.Tolerance
}

func (s subjectOf[A]) name() string { return s.op.Name() }

// dtypes are the dtypes that every op is tested with.
var dtypes = [...]tensor.DType{tensor.F32, tensor.BF16, tensor.F16}

// tolerance follows the table of tolerances: narrow storage adds the one unit by which
// two roundings of nearly equal values differ.
func (s subjectOf[A]) tolerance(d tensor.DType) tensortest.Tolerance {
	if d == tensor.F32 {
		return s.tol
	}
	return tensortest.Tolerance{Abs: 2 * s.tol.Abs, Rel: 2 * s.tol.Rel, ULP: 1}
}

// The impls that are compared. A call of Source describes all of them anew.
var fastSource, slowSource = flagos.Source(), reference.Source()

func runOf[A any](t testing.TB, source opregistry.Source, op *opregistry.Op[A]) opregistry.Func[A] {
	t.Helper()
	for _, i := range source.Impls {
		if i.Op == opregistry.Handle(op) {
			return i.Run.(opregistry.Func[A])
		}
	}
	t.Fatalf("no impl of %s in source %s", op.Name(), source.Name)
	return nil
}

func (s subjectOf[A]) differ(t *testing.T, d tensor.DType, seed uint64) {
	pool := parallel.New(2)
	defer pool.Close()
	want := s.build(newMakerOf(t, d, seed, false))
	m := newMakerOf(t, d, seed, false)
	got := s.build(m)
	require.NoError(t, s.op.Validate(got))
	operands := s.op.Operands(got)
	before := make([][]byte, len(operands))
	for i, o := range operands {
		before[i] = tensortest.Bytes(o.Tensor)
	}
	require.NoError(t, runOf(t, slowSource, s.op)(opregistry.NewExec(nil, 0), want))
	require.NoError(t, runOf(t, fastSource, s.op)(opregistry.NewExec(pool, 0), got))
	for i, o := range s.op.Operands(want) {
		switch {
		case o.Access != opregistry.AccessRead:
			if !tensortest.Close(t, o.Tensor, operands[i].Tensor, s.tolerance(o.Tensor.DType())) {
				t.Logf("operand %s of seed %d", o.Name, seed)
			}
		case !written(operands, operands[i].Tensor):
			assert.Equal(t, before[i], tensortest.Bytes(operands[i].Tensor), "operand %s is only read", o.Name)
		}
	}
	for _, check := range m.guards {
		check(t)
	}
}

// written reports whether x is also an operand that is written.
func written(operands []opregistry.Operand, x *tensor.Tensor) bool {
	for _, o := range operands {
		if o.Access != opregistry.AccessRead && tensor.Overlap(o.Tensor, x) {
			return true
		}
	}
	return false
}

func (s subjectOf[A]) same(t *testing.T, d tensor.DType) {
	run := runOf(t, fastSource, s.op)
	var want [][]byte
	for _, workers := range []int{1, 3} {
		pool := parallel.New(workers)
		a := s.build(newMakerOf(t, d, 99, true))
		require.NoError(t, s.op.Validate(a))
		require.NoError(t, run(opregistry.NewExec(pool, 0), a))
		pool.Close()
		for i, o := range s.op.Operands(a) {
			if workers == 1 {
				want = append(want, tensortest.Bytes(o.Tensor))
			} else {
				assert.Equal(t, want[i], tensortest.Bytes(o.Tensor), "operand %s with %d workers", o.Name, workers)
			}
		}
	}
}

func (s subjectOf[A]) allocs(t *testing.T, d tensor.DType, pool opregistry.Pool) float64 {
	run := runOf(t, fastSource, s.op)
	e := opregistry.NewExec(pool, 0)
	a := s.build(newMakerOf(t, d, 99, true))
	return testing.AllocsPerRun(20, func() {
		if err := run(e, a); err != nil {
			t.Fatal(err)
		}
	})
}

func TestImplsEqualTheReference(t *testing.T) {
	for _, s := range subjects() {
		for _, d := range dtypes {
			t.Run(s.name()+"/"+d.String(), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(randomCases()) {
					s.differ(t, d, seed)
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

func TestResultsDoNotDependOnTheWorkers(t *testing.T) {
	for _, s := range subjects() {
		for _, d := range dtypes {
			t.Run(s.name()+"/"+d.String(), func(t *testing.T) { s.same(t, d) })
		}
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector pools of memory drop what they hold")
	}
	for _, s := range subjects() {
		for _, d := range dtypes {
			t.Run(s.name()+"/"+d.String(), func(t *testing.T) {
				pool := parallel.New(2)
				defer pool.Close()
				assert.Zero(t, s.allocs(t, d, pool))
			})
		}
	}
}

func TestSourceHasOneImplAnOp(t *testing.T) {
	known := map[opregistry.Handle]bool{}
	for _, h := range ops.All() {
		known[h] = true
	}
	have := map[opregistry.Handle]bool{}
	for _, i := range flagos.Source().Impls {
		assert.True(t, known[i.Op], "%s is of the catalogue", i.Op.Name())
		assert.False(t, have[i.Op], "%s twice", i.Op.Name())
		have[i.Op] = true
		assert.Equal(t, flagos.ID, i.ID)
		assert.Equal(t, opregistry.KindFlagos, i.Kind)
		assert.Equal(t, flagos.Priority, i.Priority)
		assert.Empty(t, i.Vendor)
	}
	require.NoError(t, opregistry.NewRegistry().Register(flagos.Source()))
}

func set(t testing.TB, x *tensor.Tensor, values ...float64) *tensor.Tensor {
	t.Helper()
	require.NoError(t, x.SetFloat64s(values))
	return x
}

func vector(t testing.TB, values ...float64) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(make([]float32, len(values)))
	require.NoError(t, err)
	return set(t, x, values...)
}

var (
	nan = math.NaN()
	inf = math.Inf(1)
)
