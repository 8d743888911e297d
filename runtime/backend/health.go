package backend

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDiverged says that training stopped because of a spike, or because it has diverged.
var ErrDiverged = errors.New("training diverges")

// HealthChange is a kind of Judgement.
type HealthChange string

// The changes.
const (
	HealthSpike     HealthChange = "spike"     // a step is a spike, and trains on
	HealthSkipped   HealthChange = "skipped"   // a step is a spike, and its update was dropped
	HealthRewound   HealthChange = "rewound"   // a step is a spike, and the run has gone back
	HealthDiverged  HealthChange = "diverged"  // the run has diverged
	HealthRecovered HealthChange = "recovered" // the run has diverged no longer
)

// HealthChanges returns all changes.
func HealthChanges() []HealthChange {
	return []HealthChange{HealthSpike, HealthSkipped, HealthRewound, HealthDiverged, HealthRecovered}
}

// Judgement is what a trainer finds in the losses and gradient norms of a step.
type Judgement struct {
	Change HealthChange
	Step   int
	To     int    // the step that the run has gone back to
	Text   string // says all of it
}

// HealthObserver is an Observer that also receives judgements.
type HealthObserver interface{ Judged(Judgement) }

// Judged calls every HealthObserver.
func (o Observers) Judged(j Judgement) {
	for _, each := range o {
		if h, ok := each.(HealthObserver); ok {
			h.Judged(j)
		}
	}
}

// Health counts the judgements of a run.
type Health struct {
	Spikes, Skipped, Rewinds int
	LastSpike                int // the step; 0 for none
	Diverged                 int // the step since which the run has diverged; 0 if it has not
}

// String describes the health, "" for a run without spikes.
func (h Health) String() string {
	var parts []string
	if h.Diverged > 0 {
		parts = append(parts, fmt.Sprintf("diverged at step %d", h.Diverged))
	}
	if h.Spikes > 0 {
		parts = append(parts, fmt.Sprintf("spikes: %d, the last one at step %d", h.Spikes, h.LastSpike))
	}
	if h.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("updates dropped: %d", h.Skipped))
	}
	if h.Rewinds > 0 {
		parts = append(parts, fmt.Sprintf("back to a checkpoint: %d times", h.Rewinds))
	}
	return strings.Join(parts, "; ")
}
