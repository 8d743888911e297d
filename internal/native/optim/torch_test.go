package optim_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// question is what testdata/steps.py answers.
type question struct {
	Optimizer string         `json:"optimizer"`
	Arguments map[string]any `json:"arguments"`
	Shapes    [][]int        `json:"shapes"`
	Rows      []int          `json:"rows"`
	Weights   [][]float32    `json:"weights"`
	Grads     [][][]float32  `json:"grads"` // by step
}

// Five steps of each optimizer are those of PyTorch.
func TestOptimizersEqualPyTorch(t *testing.T) {
	python := primustest.Python(t, "torch")
	config := func(edit func(*optim.OptimizerConfig)) optim.OptimizerConfig {
		c := config
		edit(&c)
		return c
	}
	muon := func(nesterov bool, scale optim.MuonScale, steps int) optim.OptimizerConfig {
		return config(func(c *optim.OptimizerConfig) {
			c.Optimizer, c.Nesterov, c.Scale, c.Steps, c.ExtraScale = optim.Muon, nesterov, scale, steps, 0.2
		})
	}
	muonArguments := func(nesterov bool, scale string, steps int) map[string]any {
		return map[string]any{
			"lr": 0.01, "momentum": 0.9, "nesterov": nesterov, "steps": steps, "scale": scale, "extra": 0.2, "weight_decay": 0.1,
		}
	}
	adam := map[string]any{"lr": 0.01, "betas": []float64{0.9, 0.95}, "eps": 1e-8, "weight_decay": 0.1}
	tests := map[string]struct {
		cfg       optim.OptimizerConfig
		arguments map[string]any
		rows      []int
	}{
		"adamw": {config(func(*optim.OptimizerConfig) {}), adam, nil},
		"adam":  {config(func(c *optim.OptimizerConfig) { c.Decoupled = false }), adam, nil},
		"sgd": {config(func(c *optim.OptimizerConfig) { c.Optimizer = optim.SGD }),
			map[string]any{"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}, nil},
		"sgd without momentum": {config(func(c *optim.OptimizerConfig) { c.Optimizer, c.SGDMomentum = optim.SGD, 0 }),
			map[string]any{"lr": 0.01, "weight_decay": 0.1}, nil},
		"muon":           {muon(false, optim.Spectral, 5), muonArguments(false, "spectral", 5), []int{12}},
		"muon, nesterov": {muon(true, optim.UnitRMSNorm, 7), muonArguments(true, "unit_rms_norm", 7), []int{12}},
		"muon, in parts": {muon(false, optim.ShapeScaling, 5), muonArguments(false, "shape_scaling", 5), []int{8, 2, 2}},
	}
	questions := map[string]question{}
	r := rand.New(rand.NewPCG(1, 5))
	for name, tt := range tests {
		kind := string(tt.cfg.Optimizer)
		if kind == "" {
			kind = name
		}
		q := question{Optimizer: kind, Arguments: tt.arguments, Shapes: [][]int{{12, 5}, {12, 30}}, Rows: tt.rows}
		normal := func() (all [][]float32) {
			for _, s := range q.Shapes {
				values := make([]float32, s[0]*s[1])
				for i := range values {
					values[i] = float32(r.NormFloat64())
				}
				all = append(all, values)
			}
			return all
		}
		q.Weights = normal()
		for range 5 {
			q.Grads = append(q.Grads, normal())
		}
		questions[name] = q
	}
	text, err := json.Marshal(questions)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, "testdata/steps.py")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var answers map[string][][][]float64
	require.NoError(t, json.Unmarshal(out, &answers))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { compare(t, tt.cfg, questions[name], answers[name]) })
	}
}

// compare makes the steps of a question.
func compare(t *testing.T, cfg optim.OptimizerConfig, q question, want [][][]float64) {
	t.Helper()
	var params []optim.Param
	for i, s := range q.Shapes {
		v, err := tensor.FromSlice(q.Weights[i], s...)
		require.NoError(t, err)
		g, err := tensor.FromSlice(make([]float32, len(q.Weights[i])), s...)
		require.NoError(t, err)
		params = append(params, optim.Param{Value: v, Grad: g, Decay: true, Matrices: q.Rows})
	}
	backend := cpu.New()
	o, err := optim.New(cfg, params, newManager(t, opregistry.KindFlagos), backend)
	require.NoError(t, err)
	for i, grads := range q.Grads {
		for k, p := range params {
			copy(tensor.Data[float32](p.Grad), grads[k])
		}
		require.NoError(t, o.Step(optim.Update{Step: i + 1, LR: 0.01, WeightDecay: 0.1}))
		for k, p := range params {
			for j, w := range want[i][k] {
				require.InDelta(t, w, tensor.Data[float32](p.Value)[j], 2e-5, "step %d, weight %d, element %d", i+1, k, j)
			}
		}
	}
	for _, s := range o.State() {
		assert.Len(t, s.Tensors, len(params), s.Name)
	}
	assert.NoError(t, o.Close())
	assert.NoError(t, backend.Close())
}
