package opregistry

import (
	"fmt"
	"math"
)

// Determinism is what an impl declares about the bits of its results for equal operands.
type Determinism uint8

// The levels. Each includes the promise of the one before. The zero Determinism promises nothing:
// the bits may differ with the number of workers, or from call to call.
const (
	DeterminismUndeclared Determinism = iota
	DeterminismOfClass                // equal for any number of workers, on CPUs of one class; see cpufeat.Class
	DeterminismEverywhere             // equal on every machine
)

var determinismNames = [...]string{"not declared", "any threads", "anywhere"}

// String describes the level in words.
func (d Determinism) String() string {
	if int(d) >= len(determinismNames) {
		return fmt.Sprintf("determinism(%d)", uint8(d))
	}
	return determinismNames[d]
}

// MarshalText writes the words of String.
func (d Determinism) MarshalText() ([]byte, error) {
	if int(d) >= len(determinismNames) {
		return nil, fmt.Errorf("opregistry: %v has no text form", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads the words of String.
func (d *Determinism) UnmarshalText(text []byte) error {
	for i, name := range determinismNames {
		if name == string(text) {
			*d = Determinism(i)
			return nil
		}
	}
	return fmt.Errorf("opregistry: unknown determinism %q, want one of %q", text, determinismNames)
}

// Measurement is how fast an impl was measured to be. Among impls of one priority that match one
// token of a policy, the one with the highest Rate comes first. The zero Measurement comes last.
type Measurement struct {
	// Rate is the speed relative to default.flagos in the same run: 2 is twice as fast.
	Rate float64 `json:"rate,omitzero"`
	// By names the command that measured it, so that others can repeat it.
	By string `json:"by,omitzero"`
}

func (m Measurement) check() error {
	switch {
	case m == Measurement{}:
		return nil
	case !(m.Rate > 0) || math.IsInf(m.Rate, 0):
		return fmt.Errorf("given a measured rate of %v, want a number above 0", m.Rate)
	case m.By == "":
		return fmt.Errorf("given a measured rate of %v without what measured it", m.Rate)
	}
	return nil
}
