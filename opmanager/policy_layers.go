package opmanager

import (
	"fmt"
	"maps"

	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// LayerKind says which source a policy layer comes from, and with that where it lies in the stack.
type LayerKind uint8

// The kinds of policy layers, from the lowest to the highest: a value that several layers give is
// that of the highest one.
const (
	LayerUnspecified LayerKind = iota
	LayerDefault               // the defaults, or what the program has in their place
	LayerTuning                // a tuning file
	LayerFile                  // a policy file
	LayerFleet                 // the policy of a fleet
	LayerExperiment            // the parameters of an experiment
	LayerEnvironment           // the TE_FL_* variables
	LayerFlags                 // the flags of a command
	LayerService               // the HTTP service of a run

	layerKinds = LayerService
)

var layerNames = [...]string{
	LayerUnspecified: "unspecified",
	LayerDefault:     "default",
	LayerTuning:      "tuning",
	LayerFile:        "file",
	LayerFleet:       "fleet",
	LayerExperiment:  "experiment",
	LayerEnvironment: "environment",
	LayerFlags:       "flags",
	LayerService:     "service",
}

// LayerKinds returns all kinds, from the lowest to the highest.
func LayerKinds() []LayerKind {
	kinds := make([]LayerKind, layerKinds)
	for i := range kinds {
		kinds[i] = LayerKind(i + 1)
	}
	return kinds
}

// String returns the name of the kind, such as file.
func (k LayerKind) String() string {
	if int(k) < len(layerNames) {
		return layerNames[k]
	}
	return fmt.Sprintf("LayerKind(%d)", uint8(k))
}

// PolicyLayer is what one source says about the policy. The zero PolicyLayer says nothing.
type PolicyLayer struct {
	// Policy holds the values that the source gives (Policy.Given); the others are those of the
	// layers below. Whoever has handed it over must not change its slices and maps.
	Policy oppolicy.Policy
	// Origin names the source, such as policy.yaml. Each value has a source of its own, such as
	// policy.yaml:3.
	Origin string
	// Text is what the values were read from, "" where that was no text.
	Text string
}

// PolicyLayers are the layers of a policy by their kind. Without layers the policy is the default.
type PolicyLayers map[LayerKind]PolicyLayer

// with returns a copy with another layer of a kind.
func (l PolicyLayers) with(kind LayerKind, layer PolicyLayer) PolicyLayers {
	next := make(PolicyLayers, len(l)+1)
	maps.Copy(next, l)
	next[kind] = layer
	return next
}

// Policy returns the policy that the layers make.
func (l PolicyLayers) Policy() oppolicy.Policy {
	p := l[LayerDefault].Policy
	if p.Prefer == 0 {
		p.Prefer = oppolicy.Default().Prefer
	}
	for _, kind := range LayerKinds()[1:] {
		p = l[kind].Policy.Over(p)
	}
	return p
}
