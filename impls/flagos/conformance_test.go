package flagos_test

import (
	"flag"
	"testing"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
)

var all = flag.Bool("all", false, "run every case of the conformance kit in place of a sample")

// The sample of the corner cases; make conformance runs all.
const (
	sampleSize = 24
	sampleSeed = 1
)

func TestConformance(t *testing.T) {
	options := []opstest.Option{opstest.GuardPages()}
	if !*all {
		options = append(options, opstest.Sample(sampleSize, sampleSeed))
	}
	opscases.All().RunAll(t, flagos.Source(), reference.Source(), options...)
}

func TestGradients(t *testing.T) {
	opscases.All().GradCheckAll(t, flagos.Source(), reference.Source())
}
