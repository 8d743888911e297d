package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/tensor"
)

// everything has an argument of every sort.
type everything struct {
	In      *tensor.Tensor           `op:"0 in read any ?"`
	Out     *tensor.Tensor           `op:"1 out write any ?"`
	Flag    bool                     `op:"2 flag"`
	Side    uint8                    `op:"3 side"`
	Small   int8                     `op:"4 small"`
	Count   uint64                   `op:"5 count"`
	Step    int                      `op:"6 step"`
	Scale   float32                  `op:"7 scale"`
	Factor  float64                  `op:"8 factor"`
	Alpha   opregistry.OptionalFloat `op:"9 alpha"`
	List    []*tensor.Tensor         `op:"10 list update any ?"`
	Lists   [][]*tensor.Tensor       `op:"11 lists"`
	Axes    []int                    `op:"12 axes"`
	Options `op:"13"`
	Saved   *opregistry.Saved
}

// Window and Options are structs in arguments.
type Window struct {
	Left  int `op:"0 left"`
	Right int `op:"1 right"`
}

type Options struct {
	WindowSize Window  `op:"0 window_size"`
	PDropout   float32 `op:"2 pdropout"`
}

var everythingOp = opregistry.NewOp("everything", opregistry.Schema[everything]{Family: "everything", Forward: true, Lists: "a update any; b? update any; c? update any"})

func linuxOnly(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("plugins run in a process of their own on linux only")
	}
}

// isolate returns a plugin in a process of its own, which the test ends.
func isolate(t testing.TB, path string, limit time.Duration, log *slog.Logger) map[string]opregistry.Impl {
	t.Helper()
	linuxOnly(t)
	probe, serve := serving("probe"), serving("serve")
	serve.Timeout = limit
	report, err := sandbox.Probe(t.Context(), path, probe)
	require.NoError(t, err)
	i, err := sandbox.Isolate(path, report, catalogue, serve, log)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, i.Close()) })
	impls := map[string]opregistry.Impl{}
	for _, impl := range i.Source().Impls {
		impls[impl.ID] = impl
	}
	assert.Equal(t, "acme_ops", i.Source().Name)
	assert.Equal(t, "1.2.0", i.Source().Version)
	return impls
}

func newExec() *opregistry.Exec { return opregistry.NewExec(nil, device.DefaultStream) }

// call runs an impl of probeOp on values, which become what it wrote.
func call(t testing.TB, impl opregistry.Impl, values []float32, mode int) error {
	t.Helper()
	x, err := tensor.FromSlice(values)
	require.NoError(t, err)
	return impl.Run.(opregistry.Func[probe])(newExec(), probe{Out: x, Mode: mode})
}

func TestIsolatedAnswers(t *testing.T) {
	t.Parallel()
	acme := isolate(t, compile(t, "testdata/isolated.c"), time.Minute, nil)["vendor.acme"]
	require.NoError(t, acme.Available())
	values := []float32{1, 2, 3}
	require.NoError(t, call(t, acme, values, 0))
	require.NoError(t, call(t, acme, values, 0))
	assert.Equal(t, []float32{3, 4, 5}, values)
	require.NoError(t, call(t, acme, nil, 0), "no elements")

	err := call(t, acme, values, 1)
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	require.EqualError(t, err, "unsupported: not today")
	err = call(t, acme, values, 2)
	require.ErrorIs(t, err, opregistry.ErrUntouched)
	require.EqualError(t, err, "no memory")
	assert.Equal(t, []float32{3, 4, 5}, values, "what did not succeed is not seen")

	large := make([]float32, 3<<20)
	require.NoError(t, call(t, acme, large, 0), "the memory grows")
	assert.Equal(t, float32(1), large[0])
	assert.Equal(t, float32(1), large[len(large)-1])
	require.NoError(t, call(t, acme, values, 0))
	assert.Equal(t, []float32{4, 5, 6}, values)
}

// A process that ends or hangs fails the call, leaves the operands alone, and is started again.
func TestIsolatedProcessEnds(t *testing.T) {
	t.Parallel()
	path := compile(t, "testdata/isolated.c")
	tests := []struct {
		name string
		mode int
		want string
	}{
		{"crash", 3, "it crashed with SIGSEGV (segmentation violation)"},
		{"hang", 4, "its process did not answer within 2s"},
		{"exit", 5, `it ended its process with status 9 after the line "licence lost"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if tt.name == "hang" {
				limit = 2 * time.Second
			}
			acme := isolate(t, path, limit, nil)["vendor.acme"]
			values := []float32{1, 2, 3}
			require.NoError(t, call(t, acme, values, 0))
			err := call(t, acme, values, tt.mode)
			require.ErrorIs(t, err, opregistry.ErrUntouched)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, ` in impl "vendor.acme" of op "probe"`)
			ended := time.Now()
			again := call(t, acme, values, 0)
			if time.Since(ended) < 50*time.Millisecond {
				require.Error(t, again, "it pauses before it starts another one")
			}
			if again != nil {
				require.ErrorIs(t, again, opregistry.ErrUntouched)
				assert.ErrorContains(t, again, "its process is started again in ")
				assert.ErrorContains(t, again, tt.want)
				require.Eventually(t, func() bool { return call(t, acme, values, 0) == nil }, 2*time.Minute, 10*time.Millisecond)
			}
			assert.Equal(t, []float32{3, 4, 5}, values)
		})
	}
}

func TestIsolatedLog(t *testing.T) {
	t.Parallel()
	var out struct {
		sync.Mutex
		bytes.Buffer
	}
	log := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		out.Lock()
		defer out.Unlock()
		return out.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	acme := isolate(t, compile(t, "testdata/isolated.c"), time.Minute, log)["vendor.acme"]
	require.NoError(t, call(t, acme, []float32{1}, 6))
	require.Error(t, call(t, acme, []float32{1}, 3), "it crashes")
	for _, want := range []string{"level=DEBUG msg=\"SIGSEGV: segmentation violation\" plugin=acme_ops\n", "level=WARN msg=logged plugin=acme_ops\n", "level=INFO msg=printed plugin=acme_ops\n", "level=INFO msg=\"half a line\" plugin=acme_ops\n"} {
		require.Eventually(t, func() bool {
			out.Lock()
			defer out.Unlock()
			return strings.Contains(out.String(), want)
		}, time.Minute, time.Millisecond, want)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestIsolatedClosed(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	path := compile(t, "testdata/isolated.c")
	report, err := sandbox.Probe(t.Context(), path, serving("probe"))
	require.NoError(t, err)
	i, err := sandbox.Isolate(path, report, catalogue, serving("serve"), nil)
	require.NoError(t, err)
	require.NoError(t, call(t, i.Source().Impls[0], []float32{1}, 0))
	require.NoError(t, i.Close())
	require.NoError(t, i.Close())
	require.ErrorIs(t, call(t, i.Source().Impls[0], []float32{1}, 0), os.ErrClosed)
}

// The process has to load the library that was probed.
func TestIsolatedLibraryIsAnother(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	report, err := sandbox.Probe(t.Context(), compile(t, "testdata/isolated.c"), serving("probe"))
	require.NoError(t, err)
	for name, want := range map[string]string{
		`ID="vendor.other"`: "its ops differ from those that its probe reported: probe vendor.other",
		"ENTRY_NULL":        "it does not speak ABI 1.2",
		"LOAD_CRASH":        "it crashed with SIGSEGV (segmentation violation) in its constructors",
		"ENTRY_EXIT":        "it ended its process with status 3 in primus_plugin_get_api",
	} {
		i, err := sandbox.Isolate(compile(t, "testdata/probe.c", name), report, catalogue, serving("serve"), nil)
		require.NoError(t, err)
		assert.ErrorContains(t, call(t, i.Source().Impls[0], []float32{1}, 0), want)
		require.NoError(t, i.Close())
	}
	hang := serving("serve")
	hang.Timeout = 2 * time.Second
	i, err := sandbox.Isolate(compile(t, "testdata/probe.c", "LOAD_HANG"), report, catalogue, hang, nil)
	require.NoError(t, err)
	assert.ErrorContains(t, call(t, i.Source().Impls[0], []float32{1}, 0), "its process did not answer within 2s in its constructors and was killed")
	require.NoError(t, i.Close())

	report.Ops[0].Devices = []string{"opencl", "cuda"}
	_, err = sandbox.Isolate("libx.so", report, catalogue, serving("serve"), nil)
	require.EqualError(t, err, `plugin libx.so: impl "vendor.acme" of op "probe" serves operands on opencl, cuda, whose memory only this process sees: do not isolate the plugin, or build its ops for the CPU into a library of their own`)
	report.Ops[0].Devices = nil
	report.Ops[0].Op = "unheard_of"
	_, err = sandbox.Isolate("libx.so", report, catalogue, serving("serve"), nil)
	require.ErrorContains(t, err, `its report names op "unheard_of", which the catalogue does not have`)
}

// Arguments arrive as they do in this process, packed.
func TestIsolatedArguments(t *testing.T) {
	t.Parallel()
	path := compile(t, "../testdata/fixture.c")
	collect := func() (*slog.Logger, func() []string) {
		var mu sync.Mutex
		var got []string
		return slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				_, line, _ := bytes.Cut(bytes.TrimSpace(p), []byte("msg="))
				got = append(got, string(line))
				return len(p), nil
			}), nil)), func() []string {
				mu.Lock()
				defer mu.Unlock()
				return got
			}
	}
	x := func(shape ...int) *tensor.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(len(shape)*100 + i)
		}
		y, err := tensor.FromSlice(values, shape...)
		require.NoError(t, err)
		return y
	}
	half, err := tensor.FromSlice(make([]tensor.BFloat16, 2))
	require.NoError(t, err)
	args := everything{
		In: x(2, 3), Out: x(4), Flag: true, Side: 2, Small: -3, Count: 1 << 63, Step: -5, Scale: 0.25, Factor: -1e-300,
		Alpha: opregistry.Float(0.5), List: []*tensor.Tensor{x(), nil, x(1, 2, 3)}, Lists: [][]*tensor.Tensor{{x(5)}, {}, {half}}, Axes: []int{2, -1, 0},
		Options: Options{WindowSize: Window{-1, 3}, PDropout: 0.5}, Saved: &opregistry.Saved{},
	}
	args.Lists = append(args.Lists, []*tensor.Tensor{args.In})
	wantLog, want := collect()
	p, err := plugin.Open(path, plugin.Settings{Ops: catalogue, Log: wantLog})
	require.NoError(t, err)
	gotLog, got := collect()
	impl := isolate(t, path, time.Minute, gotLog)["acme.show"]
	for _, a := range []everything{{}, args} {
		require.NoError(t, p.Source().Impls[0].Run.(opregistry.Func[everything])(newExec(), a))
		require.NoError(t, impl.Run.(opregistry.Func[everything])(newExec(), a))
	}
	require.Eventually(t, func() bool { return len(got()) >= len(want()) }, 2*time.Minute, time.Millisecond)
	for i, line := range want() {
		if strings.Contains(line, "dtype 0/0/0") || strings.Contains(line, "1 tensor") {
			continue // what is only written is not sent
		}
		assert.Equal(t, line, got()[i])
	}
}

// An op passes the conformance kit in this process and isolated: views, aliases, guard bands, lists
// of tensors, calls at the same time.
func TestIsolatedConforms(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"../../../cmd/primus/command/internal/plugins/testdata/acme.c", "testdata/lists.c"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			conforms(t, compile(t, source))
		})
	}
	t.Run("function for TVM FFI", func(t *testing.T) {
		t.Parallel()
		conforms(t, compileMapped(t))
	})
}

// compileMapped builds a function for TVM FFI that adds, with its mapping file.
func compileMapped(t *testing.T) string {
	path := compile(t, "../testdata/tvm.c")
	const mapping = `{"name": "acme_ops", "version": "1.2.0", "vendor": "acme", "functions": [{"function": "add", "op": "residual_add", "args": ["a", "b", "output"], "dtypes": ["f32"], "thread_safe": true}]}`
	require.NoError(t, os.WriteFile(path+plugin.Suffix, []byte(mapping), 0o600))
	return path
}

func conforms(t *testing.T, path string) {
	t.Helper()
	acme := isolate(t, path, time.Minute, nil)["vendor.acme"]
	var oracle opregistry.Impl
	for _, i := range reference.Source().Impls {
		if i.Op == acme.Op {
			oracle = i
		}
	}
	results, err := opscases.All().Verify(acme, oracle)
	require.NoError(t, err)
	p, err := plugin.Open(path, plugin.Settings{Ops: catalogue})
	require.NoError(t, err)
	direct, err := opscases.All().Verify(p.Source().Impls[0], oracle)
	require.NoError(t, err)
	for i, r := range results {
		assert.Empty(t, r.Failures)
		assert.Empty(t, direct[i].Failures)
		if r.DType == tensor.F32 {
			assert.Positive(t, direct[i].Served)
			assert.Greater(t, r.Served, direct[i].Served, "strided operands arrive packed")
		}
	}
}

func TestIsolatedFromManyGoroutines(t *testing.T) {
	t.Parallel()
	acme := isolate(t, compile(t, "testdata/isolated.c"), time.Minute, nil)["vendor.acme"]
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 50 {
				values := make([]float32, 1+100*g+n)
				if err := call(t, acme, values, n%3); err != nil {
					assert.True(t, errors.Is(err, opregistry.ErrUnsupported) || errors.Is(err, opregistry.ErrUntouched), "%v", err)
					assert.Zero(t, values[0])
					continue
				}
				assert.Equal(t, float32(1), values[len(values)-1])
			}
		})
	}
	wg.Wait()
}

func BenchmarkIsolated(b *testing.B) {
	acme := isolate(b, compile(b, "testdata/isolated.c"), time.Minute, nil)["vendor.acme"]
	run := acme.Run.(opregistry.Func[probe])
	for _, bytes := range []int{4, 4 << 10, 64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dB", bytes), func(b *testing.B) {
			x, err := tensor.FromSlice(make([]float32, bytes/4))
			require.NoError(b, err)
			args := probe{Out: x}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				if err := run(newExec(), args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
