package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
)

// trainTurn is the result of one contender in one round.
type trainTurn struct {
	TokensPerSecond float64 `json:"tokens_per_second"` // of the median step
	Best            float64 `json:"best_tokens_per_second"`
	MFU             float64 `json:"mfu,omitempty"`
	PeakBytes       uint64  `json:"peak_bytes"`
}

// contender is one way to train the model.
type contender struct {
	name string
	turn func(ctx context.Context) (trainTurn, error)
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

// policies returns the policies of every comparison besides the tuned one.
func policies() []policy {
	only := func(vendor string) []string { return []string{"--per-op", "generic_gemm=vendor:" + vendor + "|flagos"} }
	return []policy{
		{baseline, []string{"--prefer", "flagos", "--deny-vendors", "*"}, "default.flagos"},
		{"openblas", only("openblas"), "vendor.openblas"},
		{"onednn", only("onednn"), "vendor.onednn"},
		{"vendor", []string{"--prefer", "vendor"}, ""},
	}
}

// environment is that of this process without what would change a policy or slow a library down.
func environment() []string {
	return without(os.Environ(), "TE_FL_", "PRIMUS_POLICY=", "OPENBLAS_CORETYPE=")
}

// tune measures the impls of a model and returns the policy that follows the result, which it keeps
// in a file.
func tune(ctx context.Context, o trainOptions, m model, file string) (policy, error) {
	args := append([]string{"ops", "tune", "--budget", o.tuning.String(), "--tuning-file", file, "-o", "json"}, o.experiment(m)...)
	cmd := exec.CommandContext(ctx, o.primus, args...)
	cmd.Env = environment()
	var made struct {
		Entries []struct{} `json:"entries"`
	}
	return policy{name: "tuned", args: []string{"--tune", file}}, answer(cmd, &made)
}

// experiment returns the arguments that say what primus trains.
func (o trainOptions) experiment(m model) []string {
	batch := strconv.Itoa(m.batch)
	return []string{"--config", m.config, "--threads", strconv.Itoa(o.threads), "micro_batch_size=" + batch, "global_batch_size=" + batch}
}

// train runs steps of a model with a policy.
func (p policy) train(ctx context.Context, o trainOptions, m model) (steps, error) {
	args := append([]string{"benchmark", "train", "-o", "json", "--steps", strconv.Itoa(o.steps), "--warmup", strconv.Itoa(o.warmup)}, o.experiment(m)...)
	var s steps
	cmd := exec.CommandContext(ctx, o.primus, append(args, p.args...)...)
	cmd.Env = environment()
	if err := answer(cmd, &s); err != nil {
		return s, err
	}
	if p.impl != "" && !slices.ContainsFunc(s.Ops, func(o opTime) bool { return o.Impl == p.impl }) {
		return s, fmt.Errorf("%s served no op: %w; see %s ops list generic_gemm", p.impl, errAbsent, o.primus)
	}
	return s, nil
}

func (p policy) contender(o trainOptions, m model) contender {
	return contender{p.name, func(ctx context.Context) (trainTurn, error) {
		s, err := p.train(ctx, o, m)
		return trainTurn{s.TokensPerSecond, float64(s.TokensPerStep) / (s.Step.Min / 1e3), s.MFU, s.PeakBytes}, err
	}}
}

// pytorch returns the peer, as fast as it can be on this machine.
func pytorch(o trainOptions, s steps) contender {
	args := []string{o.script, "--steps", strconv.Itoa(o.steps), "--warmup", strconv.Itoa(o.warmup), "--threads", strconv.Itoa(s.Threads)}
	args = append(args, shapeFlags(s.Shape)...)
	return contender{peerName, func(ctx context.Context) (trainTurn, error) {
		python, err := pythonOf(ctx, o.python)
		if err != nil {
			return trainTurn{}, err
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
			return trainTurn{}, err
		}
		if got.Parameters != s.Parameters {
			return trainTurn{}, fmt.Errorf("%s trains a model of %d parameters, primus one of %d: they cannot be compared", o.script, got.Parameters, s.Parameters)
		}
		return trainTurn{got.TokensPerSecond, float64(s.TokensPerStep) / (slices.Min(got.Steps) / 1e3), 0, got.PeakBytes}, nil
	}}
}
