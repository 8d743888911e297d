package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Action is what a run does about a spike.
type Action string

// The actions.
const (
	Warn   Action = "warn"   // reports it and trains on
	Skip   Action = "skip"   // drops the update of the step
	Rewind Action = "rewind" // goes back to the last good checkpoint and passes over the data
	Stop   Action = "stop"   // ends
)

// Values returns the actions.
func (Action) Values() []string {
	return []string{string(Warn), string(Skip), string(Rewind), string(Stop)}
}

// SpikeConfig are the parameters of the judgement of steps.
type SpikeConfig struct {
	OnSpike        Action  `param:"on_spike"` // "" means warn
	SpikeWindow    int     `param:"spike_window"`
	SpikeThreshold float64 `param:"spike_threshold"` // in standard deviations; 0 judges only whether numbers are finite
	MaxSkips       int     `param:"max_skips"`       // updates that are dropped in a row before the run ends
	MaxRewinds     int     `param:"max_rewinds"`     // how often a run goes back before it ends
}

// DefaultConfig returns the values of parameters that presets need not have.
func DefaultConfig() SpikeConfig {
	return SpikeConfig{OnSpike: Warn, SpikeWindow: 64, SpikeThreshold: 8, MaxSkips: 10, MaxRewinds: 3}
}

// Validate returns every fault of the configuration.
func (c SpikeConfig) Validate() error {
	var faults []error
	check := func(ok bool, key string, got any, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: given %v, want %s", key, got, want))
		}
	}
	values := c.OnSpike.Values()
	check(c.OnSpike == "" || slices.Contains(values, string(c.OnSpike)), "on_spike", fmt.Sprintf("%q", c.OnSpike), strings.Join(values, " or "))
	check(c.SpikeWindow >= least && c.SpikeWindow <= maxWindow, "spike_window", c.SpikeWindow, fmt.Sprintf("a number from %d to %d", least, maxWindow))
	check(c.SpikeThreshold == 0 || c.SpikeThreshold >= 3 && c.SpikeThreshold <= maxThreshold, "spike_threshold", c.SpikeThreshold, fmt.Sprintf("a number from 3 to %d, or 0 for no spikes", maxThreshold))
	check(c.MaxSkips >= 1, "max_skips", c.MaxSkips, "a number >= 1")
	check(c.MaxRewinds >= 1, "max_rewinds", c.MaxRewinds, "a number >= 1")
	return errors.Join(faults...)
}

const (
	maxWindow    = 4096
	maxThreshold = 1000
)
