package health_test

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/native/health"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guessing is the loss of guessing of the models of the recorded curves, whose tokens are bytes.
var guessing = math.Log(256)

type point struct{ loss, norm float64 }

// recorded returns the losses and gradient norms of a run of an example experiment.
func recorded(t *testing.T, name string) (curve []point) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var p point
		_, err := fmt.Sscan(s.Text(), &p.loss, &p.norm)
		require.NoError(t, err)
		curve = append(curve, p)
	}
	return curve
}

// judged is what a Monitor finds in a curve.
type judged struct {
	spikes   []int
	diverged []int
	last     health.State
}

func judge(m *health.Monitor, curve []point) (j judged) {
	for i, p := range curve {
		v, why := m.Judge(p.loss, p.norm)
		if (v == health.Good) != (why == "") {
			panic(why)
		}
		if v != health.Good {
			j.spikes = append(j.spikes, i+1)
		}
		if c, _ := m.Take(i+1, v, p.loss, p.norm, v != health.NotFinite); c == health.Diverged {
			j.diverged = append(j.diverged, i+1)
		}
	}
	j.last = m.Snapshot()
	return j
}

func newMonitor() *health.Monitor { return health.New(health.DefaultConfig(), guessing, 1) }

func TestRecordedRunsAreGood(t *testing.T) {
	for _, name := range []string{"llama_2M", "moe_8x3M", "gpt2_10M", "qwen_6M"} {
		curve := recorded(t, name)
		j := judge(newMonitor(), curve)
		assert.Empty(t, j.spikes, name)
		assert.Empty(t, j.diverged, name)
		// The same losses with a spike anywhere: the fall of the first steps hides smaller ones.
		for at := 8; at < len(curve); at += 7 {
			loss, norm := 6*guessing, 1e5*curve[at].norm
			if at > 100 {
				loss, norm = 3*curve[at].loss, 100*curve[at].norm
			}
			with := slices.Clone(curve)
			with[at].loss = loss
			assert.Equal(t, []int{at + 1}, judge(newMonitor(), with).spikes, "%s, a loss", name)
			with[at] = point{curve[at].loss, norm}
			assert.Equal(t, []int{at + 1}, judge(newMonitor(), with).spikes, "%s, a norm", name)
		}
	}
}

func TestRecordedDivergence(t *testing.T) {
	j := judge(newMonitor(), recorded(t, "diverges"))
	require.Len(t, j.diverged, 1)
	assert.LessOrEqual(t, j.diverged[0], 16)
	assert.Positive(t, j.last.Diverged, "it does not recover")
}

// TestGeneratedCurves judges falling losses with noise of several sizes, warm-ups and batches.
func TestGeneratedCurves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	steps, spikes, false1 := 0, 0, 0
	for range 100 {
		g := math.Log(math.Pow(2, 8+9*random.Float64())) // 256 to 131,072 tokens
		low, rate := g*(0.1+0.6*random.Float64()), math.Pow(10, -3+2*random.Float64())
		noise, warm := 0.02+0.4*random.Float64(), random.IntN(100) // of small batches
		var curve []point
		for i := range 500 {
			done := float64(max(i-warm/2, 0))
			mean := low + (g-low)*math.Exp(-rate*done)
			norm := math.Exp(0.4*random.NormFloat64()) * (0.3 + 5*math.Exp(-done/20))
			curve = append(curve, point{max(0, mean*(1+noise/3*random.NormFloat64())), norm})
		}
		m := health.New(health.DefaultConfig(), g, 1)
		j := judge(m, curve)
		false1 += len(j.spikes)
		assert.Empty(t, j.diverged)
		steps += len(curve)

		at := 250 + random.IntN(240)
		curve[at].loss += 12*noise/3*curve[at].loss + g
		if found := judge(health.New(health.DefaultConfig(), g, 1), curve); assert.Contains(t, found.spikes, at+1) {
			spikes++
		}
		for i := at; i < len(curve); i++ { // the run does not learn any more
			curve[i].loss = 1.3*g + 0.1*random.NormFloat64()
		}
		if late := judge(health.New(health.DefaultConfig(), g, 1), curve); at < 400 {
			assert.NotEmpty(t, late.diverged)
		}
	}
	assert.Zero(t, false1, "of %d steps", steps)
}

// TestSlowRise is a loss that never jumps.
func TestSlowRise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var curve []point
	for i := range 1000 {
		level := 2.3
		if i > 200 {
			level += float64(i-200) / 200
		}
		curve = append(curve, point{level + 0.1*random.NormFloat64(), 0.5})
	}
	j := judge(newMonitor(), curve)
	require.Len(t, j.diverged, 1)
	assert.Less(t, j.diverged[0], 600)
}

func TestNotFiniteFromStepOne(t *testing.T) {
	for _, p := range []point{{math.NaN(), 1}, {math.Inf(1), 1}, {2, math.NaN()}, {2, math.Inf(1)}} {
		v, why := newMonitor().Judge(p.loss, p.norm)
		assert.Equal(t, health.NotFinite, v)
		assert.NotEmpty(t, why)
	}
	v, _ := newMonitor().Judge(3*guessing, 1)
	assert.Equal(t, health.LossSpike, v)
}

// TestRestore compares a Monitor that goes on with one that is restored at any step.
func TestRestore(t *testing.T) {
	curve := recorded(t, "diverges")
	whole := judge(newMonitor(), curve).last
	for at := 1; at < len(curve); at += 5 {
		m := newMonitor()
		judge(m, curve[:at])
		again := newMonitor()
		again.Restore(m.Snapshot())
		for i, p := range curve[at:] {
			v, _ := again.Judge(p.loss, p.norm)
			again.Take(at+i+1, v, p.loss, p.norm, v != health.NotFinite)
		}
		require.Equal(t, whole, again.Snapshot())
	}
}

func TestRecovery(t *testing.T) {
	m := newMonitor()
	judge(m, recorded(t, "llama_2M"))
	take := func(step int, loss float64) health.Change {
		v, _ := m.Judge(loss, 0.5)
		c, _ := m.Take(step, v, loss, 0.5, true)
		return c
	}
	var changes []int
	for i := range 60 {
		loss := 3.0
		if i < 10 {
			loss = 9
		}
		if c := take(301+i, loss); c != health.Same {
			changes = append(changes, i)
		}
	}
	assert.Equal(t, []int{7, 25}, changes)
}

func TestValidate(t *testing.T) {
	require.NoError(t, health.DefaultConfig().Validate())
	c := health.SpikeConfig{OnSpike: "panic", SpikeWindow: 2, SpikeThreshold: 1}
	assert.EqualError(t, c.Validate(), `on_spike: given "panic", want warn or skip or rewind or stop
spike_window: given 2, want a number from 8 to 4096
spike_threshold: given 1, want a number from 3 to 1000, or 0 for no spikes
max_skips: given 0, want a number >= 1
max_rewinds: given 0, want a number >= 1`)
}
