package library_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/capi/internal/library"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// host is a program that has loaded the library, with an environment of its own.
type host struct {
	*library.Library
	env map[string]string
}

func newHost(env map[string]string) *host {
	h := &host{env: maps.Clone(env)}
	h.Library = library.New(library.Settings{Lookup: func(name string) (string, bool) {
		value, ok := h.env[name]
		return value, ok
	}})
	return h
}

// open opens a manager for a test.
func (h *host) open(t *testing.T, o library.Options) uint64 {
	t.Helper()
	o.Threads = 2
	m, err := h.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close(m)) })
	return m
}

func (h *host) run(bound uint64, args []abi.Arg, saved *uint64) error {
	return h.Run(bound, unsafe.Pointer(unsafe.SliceData(args)), uint32(len(args)), saved)
}

// The impls of the library pass the conformance kit when they are called as C calls them.
func TestConformance(t *testing.T) {
	if race.Enabled {
		t.Skip("kernels are arithmetic")
	}
	t.Parallel()
	h := newHost(nil)
	m := h.open(t, library.Options{})
	src := opregistry.Source{Name: "libprimus"}
	for _, op := range ops.All() {
		if _, err := plugin.Layout(op); err != nil {
			_, err := h.Bind(m, op.Name(), 0)
			require.ErrorContains(t, err, "has no form in C")
			continue
		}
		bound, err := h.Bind(m, op.Name(), plugin.LayoutHash(op))
		require.NoError(t, err)
		if op.Collective() {
			continue // no impl of the library connects processes
		}
		src.Impls = append(src.Impls, opregistry.Impl{
			Op: op, ID: "vendor.libprimus", Kind: opregistry.KindVendor, Vendor: "libprimus",
			Run: opregistry.Untyped(op, func(_ *opregistry.Exec, args any) error {
				var e encoder
				given, err := e.encode(op, args)
				if err != nil {
					return err
				}
				var saved uint64
				err = h.run(bound, given, &saved)
				runtime.KeepAlive(e)
				return err
			}),
		})
	}
	opscases.All().RunAll(t, src, reference.Source(), opstest.WithDTypes(tensor.F32), opstest.Sample(1, 1))
}

// rmsnorm are the arguments of a call of rmsnorm_fwd.
func rmsnorm(t *testing.T) (norm.RMSNormFwdArgs, []abi.Arg, *encoder) {
	t.Helper()
	of := func(shape ...int) *tensor.Tensor {
		data := make([]float32, tensor.Shape(shape).NumElements())
		for i := range data {
			data[i] = float32(i + 1)
		}
		x, err := tensor.FromSlice(data, shape...)
		require.NoError(t, err)
		return x
	}
	a := norm.RMSNormFwdArgs{Input: of(2, 3), Weight: of(3), Output: of(2, 3), RSigma: of(2), Eps: 1e-5}
	e := &encoder{}
	args, err := e.encode(norm.RMSNormFwd, a)
	require.NoError(t, err)
	return a, args, e
}

func TestCallsAllocateNothing(t *testing.T) { // not parallel: it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := newHost(nil)
	m := h.open(t, library.Options{})
	bound, err := h.Bind(m, "rmsnorm_fwd", 0)
	require.NoError(t, err)
	_, args, e := rmsnorm(t)
	var saved uint64
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := h.run(bound, args, &saved); err != nil {
			t.Error(err)
		}
	}))
	runtime.KeepAlive(e)
}

// A backward op runs where its forward op ran, also when the policy has changed in between.
func TestSavedState(t *testing.T) {
	t.Parallel()
	h := newHost(nil)
	m := h.open(t, library.Options{})
	forward, err := h.Bind(m, "rmsnorm_fwd", 0)
	require.NoError(t, err)
	backward, err := h.Bind(m, "rmsnorm_bwd", 0)
	require.NoError(t, err)
	fwd, args, e := rmsnorm(t)
	var saved uint64
	require.NoError(t, h.run(forward, args, &saved))
	assert.NotZero(t, saved)
	require.NoError(t, h.SetPolicy(m, "prefer: reference"))
	var other encoder
	back, err := other.encode(norm.RMSNormBwd, norm.RMSNormBwdArgs{DZ: fwd.Output, X: fwd.Input, RSigma: fwd.RSigma, Gamma: fwd.Weight, DX: fwd.Output, DGamma: clone(t, fwd.Weight)})
	require.NoError(t, err)
	require.NoError(t, h.run(backward, back, &saved))
	text, err := h.Metrics(m)
	require.NoError(t, err)
	assert.Contains(t, text, `primus_op_calls_total{impl="default.flagos",kind="flagos",op="rmsnorm_bwd",vendor=""} 1`)
	runtime.KeepAlive([]any{e, &other})

	unknown := uint64(99)
	require.ErrorContains(t, h.run(backward, back, &unknown), "given saved state of impl 99, want a number that a forward op has written")
	err = h.run(forward, args, nil)
	require.ErrorContains(t, err, "given no place for the number of its saved state")
	assert.EqualValues(t, library.CodeInvalid, library.Code(err))
}

func clone(t *testing.T, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	y, err := tensor.FromSlice(append([]float32(nil), tensor.Data[float32](x)...), x.Shape()...)
	require.NoError(t, err)
	return y
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	h := newHost(nil)
	m := h.open(t, library.Options{})
	bound, err := h.Bind(m, "rmsnorm_fwd", 0)
	require.NoError(t, err)
	rope, err := h.Bind(m, "fused_rope_forward", 0)
	require.NoError(t, err)
	var saved uint64
	for want, spoil := range map[string]func(args []abi.Arg) []abi.Arg{
		`argument "input" (index 0): given sort 5, want 1 (tensor)`: func(a []abi.Arg) []abi.Arg { a[0].Sort = 5; return a },
		`argument "input": given nil, want a tensor`:                func(a []abi.Arg) []abi.Arg { a[0] = abi.Arg{}; return a },
		`argument "eps": given 0, want`:                             func(a []abi.Arg) []abi.Arg { return a[:4] },
		`argument "zero_centered_gamma" (index 5): given 2, want 0 or 1`: func(a []abi.Arg) []abi.Arg {
			a[5] = abi.Arg{Sort: abi.ArgInt, Value: 2}
			return a
		},
		`given an argument at index 6, want at most 6 arguments`:     func(a []abi.Arg) []abi.Arg { return append(a, abi.Arg{Sort: abi.ArgInt}) },
		`argument "weight" (index 1): tensor: FromDLPack: given nil`: func(a []abi.Arg) []abi.Arg { a[1].Value = 0; return a },
	} {
		_, args, e := rmsnorm(t)
		err := h.run(bound, spoil(args), &saved)
		require.ErrorContains(t, err, want)
		assert.EqualValues(t, library.CodeInvalid, library.Code(err), want)
		runtime.KeepAlive(e)
	}
	params, err := plugin.Layout(ops.All()[indexOf(t, "fused_rope_forward")])
	require.NoError(t, err)
	args := make([]abi.Arg, len(params))
	for i, p := range params {
		if p.Name == "qkv_format" {
			args[i] = abi.Arg{Sort: abi.ArgInt, Value: 250}
		}
	}
	require.ErrorContains(t, h.run(rope, args, nil), "given 250, want the number of a value")
	require.ErrorContains(t, h.Run(bound, nil, 3, &saved), "given 3 arguments at NULL")
}

func indexOf(t *testing.T, name string) int {
	t.Helper()
	for i, op := range ops.All() {
		if op.Name() == name {
			return i
		}
	}
	require.Fail(t, "no op "+name)
	return 0
}

func TestHandles(t *testing.T) {
	t.Parallel()
	h := newHost(nil)
	m, err := h.Open(library.Options{Threads: 1})
	require.NoError(t, err)
	_, err = h.Bind(m, "rmsnorm", 0)
	require.ErrorContains(t, err, "did you mean")
	assert.EqualValues(t, library.CodeNotFound, library.Code(err))
	_, err = h.Bind(m, "rmsnorm_fwd", 5)
	require.ErrorContains(t, err, "it was compiled for arguments of op \"rmsnorm_fwd\" that differ")
	bound, err := h.Bind(m, "rmsnorm_fwd", 0)
	require.NoError(t, err)
	require.NoError(t, h.Close(m))
	require.ErrorContains(t, h.Close(m), "given manager 1, which was closed")
	h.Exit() // does without it
	_, args, e := rmsnorm(t)
	var saved uint64
	require.NoError(t, h.run(bound, args, &saved), "a bound op stays usable")
	require.NoError(t, h.Unbind(bound))
	err = h.run(bound, args, &saved)
	require.ErrorContains(t, err, "given bound op 1, which was closed")
	assert.EqualValues(t, library.CodeNotFound, library.Code(err))
	_, err = h.Metrics(7)
	require.ErrorContains(t, err, "given manager 7, want one that the library has returned")
	runtime.KeepAlive(e)
}

// selected returns the impl that serves an op.
func (h *host) selected(t *testing.T, m uint64, op string) string {
	t.Helper()
	text, err := h.Explain(m, op, true)
	require.NoError(t, err)
	var all []struct {
		Selected string `json:"selected"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 1)
	return all[0].Selected
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("per_op: {residual_add: [reference]}\n"), 0o600))
	h := newHost(map[string]string{"PRIMUS_POLICY": file, "TE_FL_PER_OP": "rmsnorm_fwd=reference"})
	m := h.open(t, library.Options{Policy: "per_op: {layernorm_fwd: [reference]}"})
	assert.Equal(t, "default.flagos", h.selected(t, m, "swiglu"))
	for _, op := range []string{"layernorm_fwd"} {
		assert.Equal(t, "reference.go", h.selected(t, m, op))
	}

	require.NoError(t, h.SetPolicy(m, ""))
	assert.Equal(t, "reference.go", h.selected(t, m, "rmsnorm_fwd"), "of the environment")
	delete(h.env, "TE_FL_PER_OP")
	require.NoError(t, h.ReloadPolicy(m))
	assert.Equal(t, "default.flagos", h.selected(t, m, "rmsnorm_fwd"))
	assert.Equal(t, "reference.go", h.selected(t, m, "residual_add"), "of the file")

	_, err := h.Bind(m, "swiglu", 0)
	require.NoError(t, err)
	for _, wrong := range []string{"prefer: fastest", "per_op: {swiglu: [\"vendor:none\"]}", "{"} {
		err := h.SetPolicy(m, wrong)
		require.Error(t, err, wrong)
		assert.EqualValues(t, library.CodeRefused, library.Code(err), wrong)
	}
	h.env["TE_FL_STRICT"] = "maybe"
	require.ErrorContains(t, h.ReloadPolicy(m), "TE_FL_STRICT")
	assert.Equal(t, "default.flagos", h.selected(t, m, "swiglu"), "the old policy stays")
	text, err := h.Policy(m)
	require.NoError(t, err)
	assert.Contains(t, text, `"prefer":"flagos"`)

	delete(h.env, "TE_FL_STRICT")
	h.env["TE_FL_PREFER"] = "reference"
	assert.Equal(t, "reference.go", h.selected(t, h.open(t, library.Options{}), "swiglu"))
	without := h.open(t, library.Options{Flags: library.WithoutVariables})
	require.NoError(t, h.ReloadPolicy(without))
	assert.Equal(t, "default.flagos", h.selected(t, without, "swiglu"))
	_, err = h.Open(library.Options{Flags: 6})
	require.ErrorContains(t, err, "given flags 0x6")

	_, err = h.Open(library.Options{Policy: "prefer: fastest"})
	require.ErrorContains(t, err, "fastest")
	assert.EqualValues(t, library.CodeInvalid, library.Code(err))
}

func TestThreads(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{"2": true, " 3 ": true, "4,2": true, "": true, "0": false, "-1": false, "many": false} {
		h := newHost(map[string]string{"OMP_NUM_THREADS": value})
		m, err := h.Open(library.Options{})
		assert.Equal(t, ok, err == nil, "%q: %v", value, err)
		if err == nil {
			require.NoError(t, h.Close(m))
		}
	}
	h := newHost(map[string]string{"OMP_NUM_THREADS": "none", "PRIMUS_NUM_THREADS": "2"})
	m, err := h.Open(library.Options{})
	require.NoError(t, err, "the first variable counts")
	require.NoError(t, h.Close(m))
}
