package onednn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// openedWithPrimitives returns oneDNN with the API for primitives, or skips the test with the
// reason.
func openedWithPrimitives(t *testing.T) *handle {
	t.Helper()
	h := opened(t)
	if h.noPrimitives != nil {
		t.Skip(h.noPrimitives)
	}
	return h
}

// dtypes returns those that oneDNN has primitives for on this CPU.
func dtypes(t *testing.T, h *handle) []tensor.DType {
	t.Helper()
	if err := h.primitivesBF16(); err != nil {
		t.Log("in f32 only: ", err)
		return []tensor.DType{tensor.F32}
	}
	return []tensor.DType{tensor.F32, tensor.BF16}
}

// unlimited is an impl that also serves small calls.
func unlimited[A any](h *handle, op *opregistry.Op[A], run func(*handle, *opregistry.Exec, A) error) opregistry.Impl {
	return opregistry.Impl{
		Op: op, ID: "vendor.onednn", Kind: opregistry.KindVendor, Vendor: "onednn",
		Run:               func(x *opregistry.Exec, a A) error { return run(h, x, a) },
		FlushesSubnormals: flushes,
	}
}

func oracle[A any](op *opregistry.Op[A], run opregistry.Func[A]) opregistry.Impl {
	return opregistry.Impl{Op: op, ID: "reference.test", Kind: opregistry.KindReference, Run: run}
}

// kept returns how many primitives are kept; it waits for running calls to end.
func kept(h *handle) int {
	n := 0
	for range cap(h.lanes) {
		l := <-h.lanes
		n += len(l.kept)
		h.lanes <- l
	}
	return n
}

func TestPrimitiveIsKept(t *testing.T) {
	h := openedWithPrimitives(t)
	l := <-h.lanes
	first, err := l.primitive(spec{kind: normForward, dtype: tensor.F32, rows: 1, cols: 1})
	require.NoError(t, err)
	for n := range maxKept {
		_, err := l.primitive(spec{kind: normForward, dtype: tensor.F32, rows: 1, cols: 2 + n})
		require.NoError(t, err)
		again, err := l.primitive(spec{kind: normForward, dtype: tensor.F32, rows: 1, cols: 1})
		require.NoError(t, err)
		require.Same(t, first, again, "the one in use stays")
	}
	require.Len(t, l.kept, maxKept)
	require.NotContains(t, l.kept, spec{kind: normForward, dtype: tensor.F32, rows: 1, cols: 2}, "the oldest one goes")
}

func TestPrimitiveThatCannotBeMade(t *testing.T) {
	h := openedWithPrimitives(t)
	err := h.execute(spec{dtype: tensor.F32, rows: -1, cols: 4})
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	assert.ErrorContains(t, err, "onednn: dnnl_memory_desc_init_by_strides: given status 2, want 0")
	assert.Zero(t, kept(h))
	c := newNormCall(t, 2, tensor.F32, 3, 5)
	require.NoError(t, c.run(opregistry.NewExec(nil, 0), h.layerNormForward, h.layerNormBackward))
	c.compare(t, 2)
}

func TestCallsThatAreSlowerAreNotDeclared(t *testing.T) {
	for _, impl := range New(Options{}).Source().Impls[1:] {
		assert.ErrorIs(t, impl.Support.Lead(tensor.BF16, tensor.Shape{1, 1, 1024, 512}), opregistry.ErrUnsupported)
		assert.NoError(t, impl.Support.Lead(tensor.BF16, tensor.Shape{1, 1, 2048, 512}))
		assert.ErrorIs(t, impl.Support.Lead(tensor.F32, tensor.Shape{1, 1, 2048, 512}), opregistry.ErrUnsupported)
	}
}

func TestLibraryWithoutPrimitives(t *testing.T) {
	opened(t)
	for major, want := range map[string]string{
		"2": `"dnnl_engine_create"`,
		"3": "given the C API of oneDNN 3, which has no descriptors for the caller, want that of 2",
	} {
		t.Run(major, func(t *testing.T) {
			file := loadertest.Library(t, "libproducts.so", "testdata/products.c", "-DMAJOR="+major) // without primitives
			impls := New(Options{Names: []string{file}}).Source().Impls
			require.Len(t, impls, 5)
			assert.NoError(t, impls[0].Available(), "the product is there")
			for _, impl := range impls[1:] {
				err := impl.Available()
				require.ErrorContains(t, err, want)
				assert.ErrorContains(t, err, file)
				assert.ErrorContains(t, err, "onednn: ")
			}
			c := newNormCall(t, 2, tensor.F32, 4, 8)
			run := impls[1].Run.(opregistry.Func[norm.LayerNormFwdArgs])
			assert.ErrorIs(t, run(opregistry.NewExec(nil, 0), c.forward), opregistry.ErrUnsupported)
		})
	}
}

func TestPrimitivesAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool drop what it holds")
	}
	h := openedWithPrimitives(t)
	x := opregistry.NewExec(nil, 0)
	for _, d := range dtypes(t, h) {
		c := newNormCall(t, 3, d, 8, 64)
		got := testing.AllocsPerRun(20, func() {
			if err := c.run(x, h.layerNormForward, h.layerNormBackward); err != nil {
				t.Error(err)
			}
		})
		assert.Zero(t, got, "norm of %v", d)
		g := gradientCall(t, 1, d, 1, 1, 8, 64)
		assert.Zero(t, testing.AllocsPerRun(20, func() { _ = h.softmaxGradient(x, g) }), "gradient of softmax of %v", d)
	}
}
