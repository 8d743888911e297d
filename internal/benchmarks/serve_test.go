package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServeFlags(t *testing.T) {
	for give, want := range map[string]string{
		"-clients 0":        "given 0 clients and 3 rounds",
		"-rounds 0":         "given 1000 clients and 0 rounds",
		"-every 0s":         "given -every 0s",
		"-o yaml":           `-o: given "yaml"`,
		"-phases poll,idle": `-phases: given "idle"`,
	} {
		assert.ErrorContains(t, serve(t.Context(), strings.Fields(give), io.Discard, io.Discard), want, give)
	}
}

// Ratios are taken within a round, so that a machine that slows down does not show in them.
func TestServeRatios(t *testing.T) {
	chosen, err := phases("poll")
	require.NoError(t, err)
	r := newServeReport(serveOptions{clients: 7, rounds: 3}, true, chosen)
	for _, slow := range []float64{1, 2, 5} {
		r.Phases[0].turns = append(r.Phases[0].turns, serveTurn{steps: []float64{slow, slow}, cpu: slow})
		r.Phases[1].turns = append(r.Phases[1].turns, serveTurn{
			steps: []float64{1.1 * slow, 1.1 * slow}, cpu: 1.2 * slow, served: 0.02, answers: []float64{0.001, 0.003}, refused: 1,
		})
	}
	r.compare()
	assert.InDelta(t, 1/1.1, r.Phases[1].StepRatio, 1e-9)
	assert.InDelta(t, 1/1.1, r.Phases[1].BestRatio, 1e-9)
	assert.InDelta(t, 1.2, r.Phases[1].CPURatio, 1e-9)
	var out bytes.Buffer
	require.NoError(t, r.writeTable(&out))
	assert.Regexp(t, `clients poll +6 +2200\.0 +0\.9091 +1100\.0 +0\.9091 +2400\.0 +1\.2000 +2\.00 % +0 +6 +3 +1\.0 +3\.0 +3\.0 +3\.0 +0\n`, out.String())
}
