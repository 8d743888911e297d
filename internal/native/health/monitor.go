package health

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

const (
	least       = 8 // numbers that a window needs before its median and MAD decide
	recent      = 16
	manySpikes  = 8 // of the recent losses: the run has diverged
	normal      = 1.4826
	lossFloor   = 1.0 / 20 // of the loss of guessing
	driftFloor  = 1.0 / 5  // of the loss of guessing
	normRatio   = 10
	firstFactor = 2   // of the largest loss of a short window
	firstNorms  = 100 // of the largest norm of a short window
)

// Verdict is the judgement of a step. A larger one is worse.
type Verdict int

// The verdicts.
const (
	Good Verdict = iota
	NormSpike
	LossSpike
	NotFinite
)

// String says what the step is.
func (v Verdict) String() string {
	return [...]string{"good", "spike of the gradient norm", "spike of the loss", "not finite"}[v]
}

// State is what a Monitor knows of the steps so far, for a checkpoint.
type State struct {
	Losses []float64 `json:"losses,omitempty"`     // in the window, oldest first
	Norms  []float64 `json:"grad_norms,omitempty"` // in the window, as logarithms
	Recent uint16    `json:"recent,omitempty"`     // a bit for each of the last steps, the last one lowest: its loss was a spike
	Lowest float64   `json:"lowest_median"`        // of the losses

	Spikes    int `json:"spikes,omitempty"`
	LastSpike int `json:"last_spike,omitempty"` // the step
	LastTaken int `json:"last_taken,omitempty"` // the last step that was a spike and changed the weights
	Skipped   int `json:"skipped,omitempty"`    // updates that were dropped
	InARow    int `json:"in_a_row,omitempty"`   // of them, up to the last step
	Rewinds   int `json:"rewinds,omitempty"`
	Diverged  int `json:"diverged,omitempty"` // the step at which the run was found to have diverged; 0 if it has not
}

// Monitor judges the steps of a run.
type Monitor struct {
	State
	cfg      SpikeConfig
	guessing float64 // the loss of guessing
	clip     float64
}

// New returns a Monitor before the first step. guessing is the loss of a model that knows nothing,
// clip is the norm to which gradients are scaled down, 0 for none.
func New(cfg SpikeConfig, guessing, clip float64) *Monitor {
	return &Monitor{cfg: cfg, guessing: guessing, clip: clip, State: State{Lowest: guessing}}
}

// Restore continues with the state of another Monitor. One without any begins anew.
func (m *Monitor) Restore(s State) {
	if s.Lowest == 0 {
		s.Lowest = m.guessing
	}
	s.Losses, s.Norms = tail(s.Losses, m.cfg.SpikeWindow), tail(s.Norms, m.cfg.SpikeWindow)
	m.State = s
}

// Snapshot returns a copy of the state.
func (m *Monitor) Snapshot() State {
	s := m.State
	s.Losses, s.Norms = slices.Clone(s.Losses), slices.Clone(s.Norms)
	return s
}

func tail(values []float64, n int) []float64 {
	return slices.Clone(values[max(0, len(values)-n):])
}

// Judge judges a step whose weights have not been updated, and says why. It changes nothing.
func (m *Monitor) Judge(loss, norm float64) (v Verdict, why string) {
	switch {
	case !finite(loss):
		return NotFinite, fmt.Sprintf("the loss is %v", loss)
	case !finite(norm):
		return NotFinite, fmt.Sprintf("the gradient norm is %v", norm)
	case m.cfg.SpikeThreshold == 0:
		return Good, ""
	}
	if limit, usual := m.lossLimit(); loss > limit {
		return LossSpike, fmt.Sprintf("the loss is %.4g, above %.4g, and usually %.4g", loss, limit, usual)
	}
	if limit, usual := m.normLimit(); norm > limit && norm > m.clip {
		return NormSpike, fmt.Sprintf("the gradient norm is %.4g, above %.4g, and usually %.4g", norm, limit, usual)
	}
	return Good, ""
}

// lossLimit returns the loss above which there is a spike, and the usual loss.
func (m *Monitor) lossLimit() (limit, usual float64) {
	if len(m.Losses) < least {
		most := m.guessing
		for _, v := range m.Losses {
			most = max(most, v)
		}
		return firstFactor * most, most
	}
	usual, sigma := spread(m.Losses)
	return usual + max(m.cfg.SpikeThreshold*sigma, lossFloor*m.guessing), usual
}

// normLimit returns the gradient norm above which there is a spike, and the usual norm.
func (m *Monitor) normLimit() (limit, usual float64) {
	if len(m.Norms) == 0 {
		return math.Inf(1), 0
	}
	if len(m.Norms) < least {
		usual = math.Exp(slices.Max(m.Norms))
		return firstNorms * usual, usual
	}
	middle, sigma := spread(m.Norms)
	return math.Exp(middle + max(m.cfg.SpikeThreshold*sigma, math.Log(normRatio))), math.Exp(middle)
}

// spread returns the median of numbers and their standard deviation by the MAD.
func spread(values []float64) (middle, sigma float64) {
	middle = median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - middle)
	}
	return middle, normal * median(distances)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Change is how the judgement of the run changes with a step.
type Change int

// The changes.
const (
	Same Change = iota
	Diverged
	Recovered
)

// Take takes a judged step. updated says whether it changed the weights. why says why the run has
// diverged.
func (m *Monitor) Take(step int, v Verdict, loss, norm float64, updated bool) (c Change, why string) {
	m.Recent <<= 1
	switch {
	case v == Good:
		m.Losses = m.push(m.Losses, loss)
		if norm > 0 {
			m.Norms = m.push(m.Norms, math.Log(norm))
		}
	default:
		m.Spikes, m.LastSpike = m.Spikes+1, step
		if updated {
			m.LastTaken = step
		}
		if v >= LossSpike {
			m.Recent |= 1
		}
		if v == NormSpike { // whose loss is a good one
			m.Losses = m.push(m.Losses, loss)
		}
	}
	if updated || v == Good {
		m.InARow = 0
	} else {
		m.Skipped, m.InARow = m.Skipped+1, m.InARow+1
	}
	return m.level(step)
}

func (m *Monitor) push(window []float64, v float64) []float64 {
	if len(window) < m.cfg.SpikeWindow {
		return append(window, v)
	}
	copy(window, window[1:])
	window[len(window)-1] = v
	return window
}

// level finds out whether the run has diverged.
func (m *Monitor) level(step int) (c Change, why string) {
	spikes := bits.OnesCount16(m.Recent)
	risen := 0.0
	if m.cfg.SpikeThreshold > 0 && len(m.Losses) >= least {
		middle := median(m.Losses)
		m.Lowest = min(m.Lowest, middle)
		if middle > m.Lowest+driftFloor*m.guessing {
			risen = middle
		}
	}
	switch {
	case m.Diverged == 0 && spikes >= manySpikes:
		m.Diverged = step
		return Diverged, fmt.Sprintf("%d of the last %d losses were spikes", spikes, recent)
	case m.Diverged == 0 && risen > 0:
		m.Diverged = step
		return Diverged, fmt.Sprintf("the median of the last losses has risen from %.4g to %.4g", m.Lowest, risen)
	case m.Diverged > 0 && spikes == 0 && risen == 0:
		m.Diverged = 0
		return Recovered, ""
	}
	return Same, ""
}

// Suspect reports whether an update from a spike is among the last ones of a step.
func (m *Monitor) Suspect(step int) bool { return m.LastTaken > 0 && step-m.LastTaken < recent }

// Rewound takes that the run has gone back to an earlier step with the state of a Monitor then.
func (m *Monitor) Rewound(earlier State) {
	now := m.State
	m.Restore(earlier)
	m.Spikes, m.LastSpike, m.Rewinds = now.Spikes, now.LastSpike, now.Rewinds+1
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
