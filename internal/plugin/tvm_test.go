package plugin_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/loader"

	"github.com/primus-fl/primus/internal/primustest"
)

// mapped is the catalogue that functions of tvm.c serve.
var mapped = append([]opregistry.Handle{norm.ResidualAdd}, fixtureOps...)

// compileMapped builds tvm.c and puts a mapping file beside it.
func compileMapped(t testing.TB, mapping string, flags ...string) string {
	t.Helper()
	path := compile(t, "tvm.c", flags...)
	require.NoError(t, os.WriteFile(path+plugin.Suffix, []byte(mapping), 0o600))
	return path
}

const addMapping = `{"vendor": "acme", "version": "2", "functions": [
	{"function": "add", "op": "residual_add", "args": ["a", "b", "output"], "dtypes": ["f32"], "priority": 7, "thread_safe": true, "deterministic": true}]}`

// A function serves an op by its mapping, and the calls that it cannot take are declined.
func TestMappedFunction(t *testing.T) {
	t.Parallel()
	p, err := plugin.Open(compileMapped(t, addMapping), plugin.Settings{Ops: mapped})
	require.NoError(t, err)
	assert.Equal(t, []string{"acme", "2", "tvm_ffi"}, []string{p.Name(), p.Version(), p.ABI()})
	impl := implsOf(p.Source())["vendor.acme"]
	assert.Equal(t, 7, impl.Priority)
	assert.Equal(t, opregistry.DeterminismOfClass, impl.Determinism)
	assert.NoError(t, impl.Available())
	add := func(a, b, out *tensor.Tensor) error {
		return impl.Run.(opregistry.Func[norm.ResidualAddArgs])(newExec(), norm.ResidualAddArgs{A: a, B: b, Output: out})
	}
	out := make([]float32, 4)
	x := floats(t, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, add(x, x, floats(t, out, 2, 2)))
	assert.Equal(t, []float32{2, 4, 6, 8}, out)

	turned, err := x.Transpose(0, 1)
	require.NoError(t, err)
	err = add(turned, turned, floats(t, out, 2, 2))
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	assert.ErrorContains(t, err, "a is not contiguous")
	half := newTensor(t, tensor.BF16, 2, 2)
	err = add(half, half, half)
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	assert.ErrorContains(t, err, "the dtype of a is not among [f32]")
	large := newTensor(t, tensor.F32, 1001, 1000)
	err = add(large, large, large)
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	assert.ErrorContains(t, err, "too large")
}

// Arguments arrive in the order of the mapping with the types of TVM FFI, and a call with others
// than the function gets is declined.
func TestMappedArguments(t *testing.T) {
	t.Parallel()
	p, err := plugin.Open(compileMapped(t, `{"vendor": "acme", "functions": [
		{"function": "show", "op": "everything", "args": ["out", "flag", "factor", "step", "in", "alpha"], "where": {"count": 9}}]}`), plugin.Settings{Ops: mapped})
	require.NoError(t, err)
	run := implsOf(p.Source())["vendor.acme"].Run.(opregistry.Func[everything])
	out := make([]float32, 5)
	a := everything{Out: floats(t, out, 5), Flag: true, Factor: 0.5, Step: -3, Count: 9}
	require.NoError(t, run(newExec(), a))
	assert.Equal(t, []float32{2001, 3000.5, 997, 0, 0}, out)
	a.In, a.Alpha = a.Out, opregistry.Float(2)
	require.NoError(t, run(newExec(), a))
	assert.Equal(t, []float32{2001, 3000.5, 997, 7700, 3002}, out)

	for name, change := range map[string]func(*everything){
		"no scale, want 0": func(a *everything) { a.Scale = 1 },
		"no count, want 9": func(a *everything) { a.Count = 0 },
		"no axes, want 0":  func(a *everything) { a.Axes = []int{0} },
		"no list, want 0":  func(a *everything) { a.List = []*tensor.Tensor{a.Out} },
	} {
		other := a
		change(&other)
		err := run(newExec(), other)
		require.ErrorIs(t, err, opregistry.ErrUnsupported, name)
		assert.ErrorContains(t, err, name)
	}
}

// Errors are those that the function raised, and every object is given back.
func TestMappedErrors(t *testing.T) {
	t.Parallel()
	const mapping = `{"vendor": "acme", "functions": [{"function": "mode", "op": "probe", "args": ["out", "mode"], "same_thread": true}]}`
	path := compileMapped(t, mapping)
	p, err := plugin.Open(path, plugin.Settings{Ops: mapped})
	require.NoError(t, err)
	impl := implsOf(p.Source())["vendor.acme"]
	for mode, want := range map[int]string{
		2: "ValueError: it went wrong\\n",
		3: "its function returned -1 without an error",
		5: "its function returned -1 with an error that cannot be read: it is at 0x1",
		6: "its function returned -1 with an error that cannot be read: its type index is 0, want 67",
	} {
		if _, err = call(t, impl, mode, 0); assert.ErrorContains(t, err, want) {
			assert.NotErrorIs(t, err, opregistry.ErrUnsupported)
		}
	}
	_, err = call(t, impl, 1, 0)
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	require.ErrorContains(t, err, "not for this shape")
	_, err = call(t, impl, 4, 0)
	require.NoError(t, err)
	lib, err := loader.Open(path)
	require.NoError(t, err)
	living, err := lib.Symbol("tvm_living")
	require.NoError(t, err)
	assert.EqualValues(t, 0, int32(loader.Call(living)))

	p, err = plugin.Open(compileMapped(t, mapping, "-DNO_RUNTIME"), plugin.Settings{Ops: mapped})
	require.NoError(t, err)
	_, err = call(t, implsOf(p.Source())["vendor.acme"], 2, 0)
	assert.ErrorContains(t, err, "its function returned -1, and neither it nor the libraries that it needs have TVMFFIErrorMoveFromRaised")
}

func TestWrongMappings(t *testing.T) {
	t.Parallel()
	path := compile(t, "tvm.c")
	open := func() error {
		_, err := plugin.Open(path, plugin.Settings{Ops: mapped})
		return err
	}
	assert.ErrorContains(t, open(), "functions for TVM FFI need a mapping file libtvm.so.tvm_ffi.json beside it")
	function := func(text string) string {
		return `{"vendor": "acme", "functions": [{"function": "add", ` + text + `}]}`
	}
	for want, mapping := range map[string]string{
		"it is cut off":                         `{"vendor": "acme"`,
		"it is empty":                           ``,
		"given array, want an object in braces": `[]`,
		`"functions.args": given string, want a list in brackets`: `{"vendor":"acme","functions":[{"function":"add","op":"x","args":"a"}]}`,
		`unknown field "vendors"`:                                 `{"vendors": "acme"}`,
		"text after the mapping":                                  addMapping + "x",
		`want "vendor" and at least one`:                          `{"vendor": "acme"}`,
		"want words of letters":                                   `{"vendor": "a b", "functions": [{"function": "add", "op": "residual_add", "args": ["a", "b", "output"]}]}`,
		"it exports no __tvm_ffi_sub":                             `{"vendor": "acme", "functions": [{"function": "sub", "op": "residual_add", "args": ["a"]}]}`,
		`given function "a b"`:                                    `{"vendor": "acme", "functions": [{"function": "a b", "op": "x", "args": ["a"]}]}`,
		`functions[0]: given function "add", op "" an`:            function(`"args": ["a"]`),
		`f33`: function(`"op": "residual_add", "args": ["a"], "dtypes": ["f33"]`),
	} {
		require.NoError(t, os.WriteFile(path+plugin.Suffix, []byte(mapping), 0o600))
		assert.ErrorContains(t, open(), want)
	}
	for want, mapping := range map[string]string{
		`op "residual_add" has no argument "c"; it has a, b, output`: function(`"op": "residual_add", "args": ["a", "c"]`),
		`has no argument "eps"`:                      function(`"op": "residual_add", "args": ["a"], "where": {"eps": 1}`),
		`where: argument "a" is a tensor`:            function(`"op": "residual_add", "args": ["a"], "where": {"a": 1}`),
		`argument "a" twice`:                         function(`"op": "residual_add", "args": ["a", "a"]`),
		`args have no "output", which op "residual_`: function(`"op": "residual_add", "args": ["a", "b"]`),
		`argument "axes" of op "everything" is a li`: function(`"op": "everything", "args": ["axes"]`),
	} {
		require.NoError(t, os.WriteFile(path+plugin.Suffix, []byte(mapping), 0o600))
		p, err := plugin.Open(path, plugin.Settings{Ops: mapped})
		require.NoError(t, err)
		assert.ErrorContains(t, p.Source().Impls[0].Available(), want, "the function is left out, and others would be used")
	}
	require.NoError(t, os.WriteFile(path+plugin.Suffix, []byte(function(`"op": "unknown", "args": ["a"]`)), 0o600))
	p, err := plugin.Open(path, plugin.Settings{Ops: mapped})
	require.NoError(t, err)
	assert.Contains(t, p.Unused()[0].Reason, "no such op")

	both := compile(t, "fixture.c")
	require.NoError(t, os.WriteFile(both+plugin.Suffix, []byte(addMapping), 0o600))
	_, err = plugin.Open(both, plugin.Settings{Ops: mapped})
	assert.ErrorContains(t, err, "it exports primus_plugin_get_api and has a mapping file")
}

// The mapping decides how code is called, so it is inspected and has a checksum.
func TestInspectMapping(t *testing.T) {
	t.Parallel()
	path := compileMapped(t, addMapping)
	f, err := plugin.Inspect(path)
	require.NoError(t, err)
	last := f.Dependencies[len(f.Dependencies)-1]
	assert.Equal(t, filepath.Base(path)+plugin.Suffix, filepath.Base(last.Path))
	assert.Len(t, last.SHA256, 64)
	require.NoError(t, os.Chmod(path+plugin.Suffix, 0o622))
	_, err = plugin.Inspect(path)
	require.ErrorContains(t, err, "its mapping file libtvm.so.tvm_ffi.json: it is writable by its group or others")
	require.NoError(t, os.Remove(path+plugin.Suffix))
	require.NoError(t, os.Mkdir(path+plugin.Suffix, 0o700))
	_, err = plugin.Inspect(path)
	assert.ErrorContains(t, err, "it is a directory")
}

func FuzzMapping(f *testing.F) {
	f.Add([]byte(addMapping))
	f.Add([]byte(`{"vendor": "a", "functions": [{"function": "f", "op": "x", "args": ["a"], "where": {"b": 1e400}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		m, err := plugin.Read(text)
		if err != nil {
			return
		}
		for _, function := range m.Functions {
			require.NotEmpty(t, function.ImplID)
		}
	})
}

func newTensor(t testing.TB, d tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(cpu.New(), d, shape...)
	require.NoError(t, err)
	return x
}
