package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/benchmarks/peer"
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
	cmd.Env = peer.Without(os.Environ(), "TE_FL_", "PRIMUS_POLICY=")
	if err := peer.Answer(cmd, &s); err != nil {
		return s, err
	}
	if p.impl != "" && !slices.ContainsFunc(s.Ops, func(o opTime) bool { return o.Impl == p.impl }) {
		return s, fmt.Errorf("%s served no op: %w; see %s ops list generic_gemm", p.impl, peer.ErrAbsent, o.primus)
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
	args = append(args, peer.ShapeFlags(s.Shape)...)
	return contender{"pytorch", func(ctx context.Context) (turn, error) {
		python, err := peer.Python(ctx, o.python)
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
		cmd.Env = append(peer.Without(os.Environ(), "OMP_", "LD_PRELOAD="), peer.PyTorchSettings(s.Threads)...)
		if err := peer.Answer(cmd, &got); err != nil {
			return turn{}, err
		}
		if got.Parameters != s.Parameters {
			return turn{}, fmt.Errorf("%s trains a model of %d parameters, primus one of %d: they cannot be compared", o.script, got.Parameters, s.Parameters)
		}
		return turn{got.TokensPerSecond, float64(s.TokensPerStep) / (slices.Min(got.Steps) / 1e3), 0, got.PeakBytes}, nil
	}}
}
