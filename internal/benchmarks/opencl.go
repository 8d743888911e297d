package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/clblast"
	vendorsopencl "github.com/primus-fl/primus/vendors/opencl"
)

// openCL measures the kernels of vendor.opencl on an OpenCL device, at the sizes of training steps:
// products beside CLBlast on the same device and beside flagos on the processor, attention and the
// ops that memory bounds beside flagos. A figure is the best of the rounds. A call ends when its
// result is in the memory of the device.
func openCL(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := newFlags("opencl", progress)
	index := flags.Int("device", 0, "index of the OpenCL device, as `primus devices list` prints it")
	pattern := flags.String("only", "", "regular expression of the cases to measure, such as 'llama_2M'")
	rounds := flags.Int("rounds", 20, "rounds for each case")
	var format string
	formatFlag(flags, &format)
	if err := parse(flags, args); err != nil {
		return err
	}
	only, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: given %d, want at least 1", *rounds)
	}
	b, err := newDeviceBench(*index)
	if err != nil {
		return err
	}
	defer b.close()
	d, err := b.device.Of(*index)
	if err != nil {
		return err
	}
	info := d.Info()
	fmt.Fprintf(progress, "%s, driver %s, %d compute units\n", info.Name, info.Driver, info.ComputeUnits)
	rows := []deviceRow{}
	for _, c := range deviceCases() {
		if !only.MatchString(c.name) {
			continue
		}
		r, err := b.measure(ctx, c, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, r)
	}
	return write(out, format, rows, func(w io.Writer) error { return deviceTable(w, rows) })
}

// deviceBench holds what the cases share.
type deviceBench struct {
	device *opencl.Backend
	host   *cpu.Backend
	pool   *parallel.Pool
	exec   *opregistry.Exec
	snap   *opregistry.Snapshot
}

func newDeviceBench(index int) (*deviceBench, error) {
	backend, reg := opencl.New(opencl.Options{}), opregistry.NewRegistry()
	err := errors.Join(backend.Usable(), reg.Register(flagos.Source()), reg.Register(vendorsopencl.Source()), reg.Register(clblast.New(clblast.Options{}).Source()))
	if err == nil {
		err = backend.SetDefaultDevice(index)
	}
	if err != nil {
		return nil, err
	}
	pool := parallel.New(runtime.GOMAXPROCS(0))
	return &deviceBench{device: backend, host: cpu.New(), pool: pool, exec: opregistry.NewExec(pool, 0), snap: reg.Snapshot()}, nil
}

func (b *deviceBench) close() {
	b.pool.Close()
	_ = errors.Join(b.device.Close(), b.host.Close()) // the figures are known
}

// deviceCase is work that every contender does with the same operands.
type deviceCase struct {
	name  string
	build func(*opbench.Maker) (opbench.Case, error)
}

// deviceCases returns the products and the attention of training steps of 1,024 tokens, 2,048 of
// the larger model, and the ops of such a step that memory bounds.
func deviceCases() []deviceCase {
	var all []deviceCase
	add := func(name string, build func(m *opbench.Maker) (opbench.Case, error)) {
		all = append(all, deviceCase{name, build})
	}
	for _, s := range []struct {
		name                                           string
		tokens, seq, hidden, ffn, heads, groups, vocab int
	}{
		{"llama_2M", 1024, 256, 192, 512, 6, 2, 256},
		{"llama_6M", 2048, 256, 288, 768, 6, 6, 512},
	} {
		dim := s.hidden / s.heads
		for _, l := range []struct {
			name    string
			in, out int
		}{
			{"qkv", s.hidden, s.hidden + 2*s.groups*dim}, {"proj", s.hidden, s.hidden},
			{"fc1", s.hidden, 2 * s.ffn}, {"fc2", s.ffn, s.hidden}, {"output", s.hidden, s.vocab},
		} {
			name := s.name + "/" + l.name
			add(name+"/forward", func(m *opbench.Maker) (opbench.Case, error) { return m.GEMM(s.tokens, l.out, l.in, opbench.Forward) })
			add(name+"/input", func(m *opbench.Maker) (opbench.Case, error) { return m.GEMM(s.tokens, l.in, l.out, opbench.DGrad) })
			add(name+"/weight", func(m *opbench.Maker) (opbench.Case, error) { return m.GEMM(l.out, l.in, s.tokens, opbench.WGrad) })
		}
		causal := func(m *opbench.Maker) (fwd, bwd opbench.Case, err error) {
			return m.Attention(s.tokens/s.seq, s.seq, s.heads, s.groups, dim, attention.CausalMask, nil)
		}
		add(s.name+"/attention/forward", func(m *opbench.Maker) (opbench.Case, error) { fwd, _, err := causal(m); return fwd, err })
		add(s.name+"/attention/backward", func(m *opbench.Maker) (opbench.Case, error) { _, bwd, err := causal(m); return bwd, err })
	}
	const tokens, hidden, ffn, vocab = 2048, 288, 768, 512
	for _, size := range []struct {
		rows, cols int
		ops        string
	}{
		{tokens, hidden, "rmsnorm_fwd rmsnorm_bwd layernorm_fwd residual_add embedding_fwd embedding_bwd dropout_fwd moe_permute_fwd"},
		{tokens, ffn, "swiglu dswiglu"},
		{tokens, 2 * ffn, "gelu dbias_dgelu"},
		{tokens, vocab, "cross_entropy_fwd cross_entropy_bwd"},
		{tokens, 1024, "multi_tensor_adam multi_tensor_l2norm multi_tensor_scale"},
	} {
		for _, op := range strings.Fields(size.ops) {
			add("memory/"+op, func(m *opbench.Maker) (opbench.Case, error) { return m.Op(op, size.rows, size.cols) })
		}
	}
	add("memory/fused_rope_forward", func(m *opbench.Maker) (opbench.Case, error) {
		const seq, heads, dim = 256, 9, hidden / 9
		x := func() *tensor.Tensor { return m.Random(tokens/seq, seq, heads, dim) }
		a := rope.FusedRopeArgs{Input: x(), Freqs: m.Filled(tensor.F32, 0.5, seq, 1, 1, dim), Output: x(), QKVFormat: attention.BSHD}
		return opbench.NewCase(m, rope.FusedRopeForward, "heads", a)
	})
	return all
}

// contenders are the columns of the table.
var contenders = [...]string{"opencl", "clblast", "flagos"}

// deviceRow is the result of a case: the rate of each contender, and why others are absent.
type deviceRow struct {
	Case   string             `json:"case"`
	Unit   string             `json:"unit"` // GFLOP/s, or GB/s of the operands
	Rates  map[string]float64 `json:"rates"`
	Absent map[string]string  `json:"absent,omitempty"`
}

// measure lets the contenders of a case take turns.
func (b *deviceBench) measure(ctx context.Context, c deviceCase, rounds int) (r deviceRow, err error) {
	var onDevice, onHost opbench.Case
	for _, at := range []struct {
		memory device.Backend
		made   *opbench.Case
	}{{b.device, &onDevice}, {b.host, &onHost}} {
		m := opbench.NewMaker(at.memory, tensor.F32)
		defer func() { err = errors.Join(err, m.Close()) }()
		if *at.made, err = c.build(m); err != nil {
			return r, err
		}
	}
	r = deviceRow{Case: c.name, Unit: "GB/s", Rates: map[string]float64{}, Absent: map[string]string{}}
	work := onHost.Bytes
	if onHost.Bound == opbench.Compute {
		r.Unit, work = "GFLOP/s", onHost.FLOPs
	}
	side := func(on opbench.Case, id string) *opbench.Side {
		return on.Side(opbench.Elapsed(), b.snap, implOf(b.snap, on.Op, id), b.exec)
	}
	named := map[string]*opbench.Side{"opencl": side(onDevice, "vendor.opencl"), "flagos": side(onHost, flagosID)}
	if onHost.Op.Name() == gemm.GenericGemm.Name() {
		named["clblast"] = side(onDevice, "vendor.clblast")
	}
	var sides []*opbench.Side
	for _, name := range contenders {
		switch s := named[name]; {
		case s == nil:
		case s.Err != nil:
			r.Absent[name] = s.Err.Error()
		default:
			sides = append(sides, s)
		}
	}
	for n := range rounds {
		opbench.Round(n, sides)
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	for name, s := range named {
		if s.Err != nil && r.Absent[name] == "" {
			return r, fmt.Errorf("%s: %w", name, s.Err)
		}
		if s.Err == nil {
			r.Rates[name] = work / slices.Min(s.Samples).Seconds() / 1e9
		}
	}
	return r, nil
}

func deviceTable(w io.Writer, rows []deviceRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\topencl\tclblast\tflagos\tunit\topencl/clblast\topencl/flagos")
	ratios := map[string][]float64{}
	for _, r := range rows {
		fmt.Fprint(t, r.Case)
		for _, name := range contenders {
			fmt.Fprintf(t, "\t%s", figure("%.1f", r.Rates[name]))
		}
		fmt.Fprintf(t, "\t%s", r.Unit)
		for _, name := range contenders[1:] {
			ratio := 0.0
			if r.Rates[name] > 0 {
				ratio = r.Rates["opencl"] / r.Rates[name]
				ratios[name] = append(ratios[name], ratio)
			}
			fmt.Fprintf(t, "\t%s", figure("%.2f", ratio))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "geometric mean\t\t\t\t")
	for _, name := range contenders[1:] {
		mean := 0.0
		if len(ratios[name]) > 0 {
			mean = stat.GeometricMean(ratios[name], nil)
		}
		fmt.Fprintf(t, "\t%s", figure("%.2f", mean))
	}
	fmt.Fprintln(t)
	return t.Flush()
}
