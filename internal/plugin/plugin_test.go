package plugin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

func TestLayoutIsTheOneOfTheHeader(t *testing.T) {
	t.Parallel()
	for _, op := range ops.All() {
		fields, err := plugin.Layout(op)
		if err != nil {
			assert.Contains(t, abi.ArgsHeader(), "/* "+op.Name()+": not for plugins", err)
		}
		if err == nil {
			assert.Contains(t, abi.ArgsHeader(), fmt.Sprintf("#define PRIMUS_%s_LAYOUT UINT64_C(0x%016x)\n", strings.ToUpper(op.Name()), plugin.LayoutHash(op)))
		}
		for i, f := range fields {
			assert.Contains(t, abi.ArgsHeader(), fmt.Sprintf("#define PRIMUS_%s_%s %du ", strings.ToUpper(op.Name()), f.Macro(), i))
		}
	}
}

func TestLayoutOfStructs(t *testing.T) {
	t.Parallel()
	fields, err := plugin.Layout(everythingOp)
	require.NoError(t, err)
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	assert.Equal(t, "in out flag side small count step scale factor alpha list lists axes window_size.left window_size.right pdropout", strings.Join(names, " "))
}

func TestLayoutOfWhatHasNoFormInC(t *testing.T) {
	t.Parallel()
	type args struct {
		Names []string `op:"- names"`
	}
	_, err := plugin.Layout(opregistry.NewOp("names", opregistry.Schema[args]{}))
	require.EqualError(t, err, `plugin: op "names": argument names of type []string has no form in C`)
}

// The documentation lists the ops of the catalogue that plugins cannot serve.
func TestDocumentedLayouts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "plugins.md"))
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(text)), " ")
	_, list, found := strings.Cut(words, "are left out: ")
	require.True(t, found)
	list, _, _ = strings.Cut(list, ". ")
	var left []string
	for _, op := range ops.All() {
		if _, err := plugin.Layout(op); err != nil {
			left = append(left, "`"+op.Name()+"`")
		}
	}
	assert.Equal(t, strings.Join(left, ", "), list)
	assert.Contains(t, words, fmt.Sprintf("The catalogue has %d ops with arguments of other forms", len(left)))
}

func TestOpThatIsNotDispatched(t *testing.T) {
	t.Parallel()
	p, err := plugin.Open(compile(t, "fixture.c", `-DUNKNOWN="nvshmem_finalize"`), plugin.Settings{Ops: fixtureOps})
	require.NoError(t, err)
	assert.Equal(t, []plugin.UnusedOp{{
		Op: "nvshmem_finalize", Impl: "acme.unknown",
		Reason: "this program's catalogue has no such op; TransformerEngine-FL uses it to stop NVSHMEM; here: nothing: ranks share no memory",
	}}, p.Unused())
}

func TestDescription(t *testing.T) {
	t.Parallel()
	p, impls, _ := openFixture(t)
	assert.Equal(t, "acme_ops", p.Name())
	assert.Equal(t, "1.2.0", p.Version())
	assert.Equal(t, "1.2", p.ABI())
	assert.Equal(t, []plugin.UnusedOp{{Op: "not_in_the_catalogue", Impl: "acme.unknown", Reason: "this program's catalogue has no such op"}}, p.Unused())
	assert.Equal(t, "acme_ops", p.Source().Name)
	assert.Equal(t, "1.2.0", p.Source().Version)
	show := impls["acme.show"]
	assert.Same(t, everythingOp, show.Op)
	assert.Equal(t, opregistry.KindVendor, show.Kind)
	assert.Equal(t, "acme", show.Vendor)
	assert.Equal(t, 100, show.Priority)
	require.NoError(t, opregistry.NewRegistry().Register(p.Source()))
}

// A library that was compiled before two arguments changed places would read one for the other.
func TestOtherLayout(t *testing.T) {
	t.Parallel()
	type swapped struct {
		Mode int            `op:"0 mode"`
		Out  *tensor.Tensor `op:"1 out update any"`
		Text int            `op:"2 text"`
	}
	op := opregistry.NewOp("probe", opregistry.Schema[swapped]{})
	open := func(ops []opregistry.Handle, flags ...string) (*plugin.Plugin, map[string]opregistry.Impl) {
		p, err := plugin.Open(compile(t, "fixture.c", flags...), plugin.Settings{Ops: ops})
		require.NoError(t, err)
		return p, implsOf(p.Source())
	}
	p, impls := open([]opregistry.Handle{everythingOp, op})
	require.NoError(t, impls["acme.show"].Available(), "the other op is used")
	const want = `it was compiled with arguments "mode" and "out" of op "probe" in each other's place; rebuild it against primus_op_args.h of this version`
	require.EqualError(t, impls["acme.answer"].Available(), want)
	err := impls["acme.answer"].Run.(opregistry.Func[swapped])(newExec(), swapped{})
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	require.EqualError(t, err, "unsupported: "+want)
	r := p.Report()
	assert.Contains(t, r.Outdated(), `impl "acme.answer" of op "probe" is left out: `+want)

	_, impls = open(fixtureOps, "-UPROBE", "-DPROBE=0")
	require.EqualError(t, impls["acme.answer"].Available(), `op "probe" has no layout; set .layout of its primus_op to PRIMUS_PROBE_LAYOUT of primus_op_args.h`)
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	_, impls, _ := openFixture(t)
	require.NoError(t, impls["acme.show"].Available())
	require.NoError(t, impls["acme.thread"].Available(), "a text with PRIMUS_OK means nothing")
	require.EqualError(t, impls["acme.driver"].Available(), "no driver of version 3")
	require.EqualError(t, impls["acme.reason"].Available(), "its is_available returned 9")

	var steps []string
	file := compile(t, "fixture.c")
	p, err := plugin.Open(file, plugin.Settings{Ops: fixtureOps, Before: func(step string) { steps = append(steps, step) }})
	require.NoError(t, err)
	r := p.Report()
	assert.Equal(t, []string{"its constructors", "primus_plugin_get_api", "reading its description", `is_available of impl "acme.show" of op "everything"`}, steps[:4])
	assert.Len(t, steps, 3+len(impls))
	require.Len(t, r.Ops, len(impls))
	assert.Equal(t, plugin.OpReport{
		Op: "everything", Impl: "acme.show", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Flags: []string{"thread_safe", "deterministic"}, Available: true,
	}, r.Ops[0])

	// What a probe saw takes the place of asking again.
	r.Ops[0].Available, r.Ops[0].Reason = false, "seen by the probe"
	r.Ops = r.Ops[:len(r.Ops)-1]
	told, err := plugin.Open(file, plugin.Settings{Ops: fixtureOps, Report: &r})
	require.NoError(t, err)
	impls = implsOf(told.Source())
	require.EqualError(t, impls["acme.show"].Available(), "seen by the probe")
	require.NoError(t, impls["acme.thread"].Available())
	require.EqualError(t, impls["acme.reason"].Available(), "its probe did not list it")
}

// Every argument arrives at its index with its value.
func TestArguments(t *testing.T) {
	t.Parallel()
	_, impls, log := openFixture(t)
	in := floats(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	rows, err := in.AsStrided([]int{3, 2}, []int{1, 3}, 0)
	require.NoError(t, err)
	part, err := in.Slice(0, 1, 2)
	require.NoError(t, err)
	empty, err := in.Slice(0, 1, 1)
	require.NoError(t, err)
	half, err := tensor.FromSlice(make([]tensor.BFloat16, 2))
	require.NoError(t, err)
	scalar := floats(t, []float32{7})
	scalar, err = scalar.Reshape()
	require.NoError(t, err)

	tests := []struct {
		name string
		give everything
		want []string
	}{
		{name: "zero", want: []string{
			"call 16 args stream (nil) workspace 0", "0 absent 0", "1 absent 0", "2 int 0", "3 int 0", "4 int 0", "5 int 0", "6 int 0",
			"7 float 0", "8 float 0", "9 absent 0", "10 list of 0", "11 lists 0", "12 ints", "13 int 0", "14 int 0", "15 float 0"}},
		{name: "all", give: everything{
			In: in, Out: rows, Flag: true, Side: 2, Small: -3, Count: 1 << 40, Step: -5, Scale: 0.25, Factor: -1e-300,
			Alpha: opregistry.Float(0), List: []*tensor.Tensor{part, nil, empty}, Lists: [][]*tensor.Tensor{{in}, {}, {scalar, half}}, Axes: []int{2, -1, 0},
			Options: Options{WindowSize: Window{-1, 3}, PDropout: 0.5}, Saved: &opregistry.Saved{},
		}, want: []string{
			"call 16 args stream (nil) workspace 0",
			"0 tensor device 1:0 dtype 2/32/1 shape 2 3 strides 3 1 first 1",
			"1 tensor device 1:0 dtype 2/32/1 shape 3 2 strides 1 3 first 1",
			"2 int 1", "3 int 2", "4 int -3", "5 int 1099511627776", "6 int -5", "7 float 0.25", "8 float -1e-300", "9 float 0",
			"10 list of 3", "10 tensor device 1:0 dtype 2/32/1 shape 1 3 strides 3 1 first 4",
			"10 tensor device 0:0 dtype 0/0/0 shape strides", "10 tensor device 1:0 dtype 2/32/1 shape 0 3 strides 3 1",
			"11 lists 3", "11[0] list of 1", "11[0] tensor device 1:0 dtype 2/32/1 shape 2 3 strides 3 1 first 1",
			"11[1] list of 0", "11[2] list of 2", "11[2] tensor device 1:0 dtype 2/32/1 shape strides first 7",
			"11[2] tensor device 1:0 dtype 4/16/1 shape 2 strides 1 first 0", "12 ints 2 -1 0", "13 int -1", "14 int 3", "15 float 0.5"}},
	}
	run := impls["acme.show"].Run.(opregistry.Func[everything])
	for range 2 { // the second time in a frame that was used
		for _, tt := range tests {
			require.NoError(t, run(newExec(), tt.give))
			got := log.take()
			require.Len(t, got, len(tt.want), tt.name)
			for i, line := range got {
				text, _, _ := strings.Cut(strings.TrimPrefix(line, "level=INFO msg="), " plugin=")
				assert.Equal(t, tt.want[i], strings.TrimSuffix(strings.Trim(text, `"`), " "), tt.name)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	_, impls, _ := openFixture(t)
	tests := []struct {
		name       string
		impl       string
		mode, text int
		want       string
		declined   bool
	}{
		{"ok", "acme.answer", abi.OK, 0, "", false},
		{"ok with a text", "acme.answer", abi.OK, 1, "", false},
		{"declined", "acme.answer", abi.Unsupported, 1, "unsupported: the text of 1", true},
		{"declined without a text", "acme.answer", abi.Unsupported, 0, "unsupported: the plugin declined", true},
		{"failed", "acme.answer", abi.Failed, 1, "the text of 2", false},
		{"failed without a text", "acme.answer", abi.Failed, 0, "the plugin returned 2", false},
		{"out of memory", "acme.answer", abi.OutOfMemory, 1, "device: out of memory: the text of 3", false},
		{"lost without a text", "acme.answer", abi.DeviceLost, 0, "device: the device is lost: the plugin returned 4", false},
		{"unknown result", "acme.answer", -7, 0, "the plugin returned -7", false},
		{"text without end", "acme.answer", abi.Failed, 2, strings.Repeat("x", 512), false},
		{"text that is no UTF-8", "acme.answer", abi.Failed, 3, `not \xff text`, false},
		{"supports declines", "acme.supports", abi.Unsupported, 1, "unsupported: the text of 1", true},
		{"supports fails", "acme.supports", abi.Failed, 1, "the text of 2", false},
		{"workspace beyond reason", "acme.workspace", -1, 0, "workspace_size asks for 18446744073709551615 bytes, want at most 17179869184", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := call(t, impls[tt.impl], tt.mode, tt.text)
			assert.Equal(t, make([]float32, 4), out, "nothing is written")
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.want)
			assert.Equal(t, tt.declined, errors.Is(err, opregistry.ErrUnsupported))
			assert.Equal(t, tt.mode == abi.OutOfMemory, errors.Is(err, device.ErrOutOfMemory))
			assert.Equal(t, tt.mode == abi.DeviceLost, errors.Is(err, device.ErrLost))
		})
	}
	out, err := call(t, impls["acme.supports"], 0, 0)
	require.NoError(t, err)
	assert.Equal(t, []float32{1, 0, 0, 0}, out)
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	_, impls, _ := openFixture(t)
	for _, bytes := range []int{0, 1, 4, 63, 64, 65, 1 << 20} {
		out, err := call(t, impls["acme.workspace"], bytes, 0)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, out[0], float32(bytes))
		assert.Less(t, out[0], float32(bytes+4))
		assert.Zero(t, out[1], "aligned to 64 bytes")
	}
}

// concurrently calls impls from eight goroutines at a time and returns how many calls overlapped at
// most and the threads that they came from.
func concurrently(t *testing.T, impls ...opregistry.Impl) (most float32, threads map[float32]bool) {
	t.Helper()
	_, err := call(t, impls[0], 1, 0)
	require.NoError(t, err)
	var wg sync.WaitGroup
	outs := make([][]float32, 8)
	for g := range outs {
		wg.Go(func() {
			for i := range 8 {
				out, err := call(t, impls[(g+i)%len(impls)], 0, 0)
				assert.NoError(t, err)
				outs[g] = append(outs[g], out...)
			}
		})
	}
	wg.Wait()
	threads = map[float32]bool{}
	for _, out := range outs {
		for i := 0; i < len(out); i += 4 {
			most = max(most, out[i])
			threads[out[i+1]] = true
		}
	}
	return most, threads
}

func TestThreads(t *testing.T) {
	t.Parallel()
	_, impls, _ := openFixture(t)
	most, _ := concurrently(t, impls["acme.safe"])
	assert.Greater(t, most, float32(1), "calls of a thread-safe op overlap")
	most, _ = concurrently(t, impls["acme.serial"], impls["acme.serial2"])
	assert.Equal(t, float32(1), most, "calls of others come one at a time, also of different ops")
	most, threads := concurrently(t, impls["acme.thread"])
	assert.Equal(t, float32(1), most)
	assert.Len(t, threads, 1, "an op that asks for it sees one thread")
}

func TestHost(t *testing.T) {
	t.Parallel()
	_, impls, log := openFixture(t)
	out, err := call(t, impls["acme.host"], 0, 0)
	require.NoError(t, err)
	assert.Equal(t, []float32{32, 0, 1, 0}, out, "size of the struct, alignment of memory, no memory without measure")
	assert.Equal(t, []string{
		"level=DEBUG msg=debug plugin=acme_ops", `level=INFO msg="info \\xff" plugin=acme_ops`, "level=WARN msg=warn plugin=acme_ops",
		"level=ERROR msg=error plugin=acme_ops", "level=ERROR msg=beyond plugin=acme_ops", `level=INFO msg="" plugin=acme_ops`,
		`level=INFO msg="the text of a log line has no end within 4096 bytes" plugin=acme_ops`,
		`level=WARN msg="from another thread" plugin=acme_ops`,
	}, log.take())
}

func TestSilentHost(t *testing.T) {
	t.Parallel()
	p, err := plugin.Open(compile(t, "fixture.c"), plugin.Settings{Ops: fixtureOps})
	require.NoError(t, err)
	_, err = call(t, implsOf(p.Source())["acme.host"], 0, 0)
	require.NoError(t, err)
}

func BenchmarkCall(b *testing.B) {
	_, impls, _ := openFixture(b)
	run := impls["acme.answer"].Run.(opregistry.Func[probe])
	x, args := newExec(), probe{Out: floats(b, make([]float32, 4), 4)}
	b.ReportAllocs()
	for b.Loop() {
		if err := run(x, args); err != nil {
			b.Fatal(err)
		}
	}
}
