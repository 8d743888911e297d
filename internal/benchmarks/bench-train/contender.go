package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// turn is the result of one contender in one round.
type turn struct {
	TokensPerSecond float64 `json:"tokens_per_second"` // of the median step
	Best            float64 `json:"best_tokens_per_second"`
	MFU             float64 `json:"mfu,omitempty"`
	PeakBytes       uint64  `json:"peak_bytes"`
}

// contender is one way to train the model.
type contender struct {
	name string
	turn func(ctx context.Context) (turn, error)
}

// errAbsent says that a contender cannot run on this machine.
var errAbsent = errors.New("not available")

// steps is the part of the output of `primus benchmark train -o json` that is used here.
type steps struct {
	Parameters      int            `json:"parameters"`
	Threads         int            `json:"threads"`
	TokensPerStep   int            `json:"tokens_per_step"`
	TokensPerSecond float64        `json:"tokens_per_second"`
	MFU             float64        `json:"mfu"`
	PeakBytes       uint64         `json:"peak_bytes"`
	Shape           map[string]any `json:"shape"`
	Step            struct {
		Min float64 `json:"min"`
	} `json:"step_ms"`
	Ops []opTime `json:"ops"`
}

// opTime is the time that an impl took of a step.
type opTime struct {
	Op   string  `json:"op"`
	Impl string  `json:"impl"`
	MS   float64 `json:"ms"`
}

// policy is a way for primus to choose impls.
type policy struct {
	name string
	args []string
	impl string // has to have served something; "" for none in particular
}

// policies returns the policies of every comparison. The best mix is computed from their steps.
func policies() []policy {
	only := func(vendor string) []string { return []string{"--per-op", "generic_gemm=vendor:" + vendor + "|flagos"} }
	return []policy{
		{"flagos", []string{"--prefer", "flagos", "--deny-vendors", "*"}, "default.flagos"},
		{"openblas", only("openblas"), "vendor.openblas"},
		{"onednn", only("onednn"), "vendor.onednn"},
	}
}

// train runs steps of a model with a policy.
func (p policy) train(ctx context.Context, o options, m model) (steps, error) {
	batch := strconv.Itoa(m.batch)
	args := []string{
		"benchmark", "train", "--config", m.config, "-o", "json", "--steps", strconv.Itoa(o.steps), "--warmup", strconv.Itoa(o.warmup),
		"--threads", strconv.Itoa(o.threads), "micro_batch_size=" + batch, "global_batch_size=" + batch,
	}
	var s steps
	cmd := exec.CommandContext(ctx, o.primus, append(args, p.args...)...)
	cmd.Env = without(os.Environ(), "TE_FL_", "PRIMUS_POLICY=")
	if err := answer(cmd, &s); err != nil {
		return s, err
	}
	if p.impl != "" && !slices.ContainsFunc(s.Ops, func(o opTime) bool { return o.Impl == p.impl }) {
		return s, fmt.Errorf("%s served no op: %w; see %s ops list generic_gemm", p.impl, errAbsent, o.primus)
	}
	return s, nil
}

func (p policy) contender(o options, m model) contender {
	return contender{p.name, func(ctx context.Context) (turn, error) {
		s, err := p.train(ctx, o, m)
		return turn{s.TokensPerSecond, float64(s.TokensPerStep) / (s.Step.Min / 1e3), s.MFU, s.PeakBytes}, err
	}}
}

// bestMix returns the policy that gives each op to the impl that was fastest in a step under any of
// the others.
func bestMix(seen []steps) policy {
	best := map[string]opTime{}
	var order []string
	for _, s := range seen {
		spent := map[string]opTime{}
		for _, o := range s.Ops {
			sum := spent[o.Op]
			if o.MS > sum.MS-o.MS { // the impl with most of the op stands for its policy
				sum.Impl = o.Impl
			}
			sum.MS += o.MS
			spent[o.Op] = sum
		}
		for op, t := range spent {
			if old, ok := best[op]; !ok || t.MS < old.MS {
				best[op] = t
			}
		}
	}
	for op, t := range best {
		token := "flagos"
		if vendor, ok := strings.CutPrefix(t.Impl, "vendor."); ok {
			token = "vendor:" + vendor + "|flagos" // vendors name their impls vendor.NAME
		}
		order = append(order, op+"="+token)
	}
	slices.Sort(order)
	return policy{name: "best mix", args: []string{"--per-op", strings.Join(order, ";")}}
}

// pytorch returns the peer, as fast as it can be on this machine.
func pytorch(o options, s steps) contender {
	args := []string{o.script, "--steps", strconv.Itoa(o.steps), "--warmup", strconv.Itoa(o.warmup), "--threads", strconv.Itoa(s.Threads)}
	for _, name := range slices.Sorted(maps.Keys(s.Shape)) {
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		switch v := s.Shape[name].(type) {
		case bool:
			if v {
				args = append(args, flag)
			}
		default:
			args = append(args, flag, fmt.Sprint(v))
		}
	}
	return contender{"pytorch", func(ctx context.Context) (turn, error) {
		python, err := findPython(ctx, o.python)
		if err != nil {
			return turn{}, err
		}
		var got struct {
			Parameters      int       `json:"parameters"`
			TokensPerSecond float64   `json:"tokens_per_second"`
			Steps           []float64 `json:"step_ms_all"`
			PeakBytes       uint64    `json:"peak_bytes"`
		}
		cmd := exec.CommandContext(ctx, python, args...)
		cmd.Env = append(without(os.Environ(), "OMP_", "LD_PRELOAD="), pytorchSettings(s.Threads)...)
		if err := answer(cmd, &got); err != nil {
			return turn{}, err
		}
		if got.Parameters != s.Parameters {
			return turn{}, fmt.Errorf("%s trains a model of %d parameters, primus one of %d: they cannot be compared", o.script, got.Parameters, s.Parameters)
		}
		return turn{got.TokensPerSecond, float64(s.TokensPerStep) / (slices.Min(got.Steps) / 1e3), 0, got.PeakBytes}, nil
	}}
}

// pytorchSettings returns the environment variables that make Debian's PyTorch fast on this CPU.
func pytorchSettings(threads int) []string {
	set := []string{"OMP_NUM_THREADS=" + strconv.Itoa(threads)}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		set = append(set, "OPENBLAS_CORETYPE=SKYLAKEX", "ATEN_CPU_CAPABILITY=avx512")
	case cpufeat.Has(cpufeat.AVX2):
		set = append(set, "OPENBLAS_CORETYPE=HASWELL", "ATEN_CPU_CAPABILITY=avx2")
	}
	if found, _ := filepath.Glob("/usr/lib/*/openblas-openmp"); len(found) > 0 {
		set = append(set, "LD_LIBRARY_PATH="+found[0])
	}
	if found, _ := filepath.Glob("/usr/lib/*/libtcmalloc_minimal.so.4"); len(found) > 0 {
		set = append(set, "LD_PRELOAD="+found[0])
	}
	return set
}

func findPython(ctx context.Context, given string) (string, error) {
	try := []string{"/usr/bin/python3", "python3"}
	if given != "" {
		try = []string{given}
	}
	for _, python := range try {
		if exec.CommandContext(ctx, python, "-c", "import torch").Run() == nil {
			return python, nil
		}
	}
	return "", fmt.Errorf("PyTorch: %w: %s cannot import torch; install python3-torch or give -python", errAbsent, strings.Join(try, " and "))
}

// answer runs a command and reads the JSON that it prints.
func answer(cmd *exec.Cmd, into any) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// without returns the variables that begin with none of the prefixes.
func without(env []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(v, p) })
	})
}

// describeMachine returns the name and the number of the CPUs.
func describeMachine() string {
	name := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			name = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d × %s", runtime.NumCPU(), name)
}
