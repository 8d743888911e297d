package oppolicy_test

import (
	"testing"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseLayers(t *testing.T) {
	t.Parallel()
	got, err := oppolicy.ParseLayers(" 0-3, 7 ,9 - 9", "here")
	require.NoError(t, err)
	assert.Equal(t, []oppolicy.LayerRange{{First: 0, Last: 3}, {First: 7, Last: 7}, {First: 9, Last: 9}}, got)
	for give, want := range map[string]string{
		"":        `policy: here="": at 1: "" is not a layer, want a number counted from 0 or a range such as 0-3`,
		"1,,2":    `at 3: "" is not a layer`,
		"0-3,x":   `at 5: "x" is not a layer`,
		"3-1":     `range "3-1" ends before it begins, want 1-3`,
		"-1":      `"-1" is not a layer`,
		"1000000": `"1000000" is not a layer`,
	} {
		_, err := oppolicy.ParseLayers(give, "here")
		require.ErrorContains(t, err, want, give)
	}
}

func TestParsePhase(t *testing.T) {
	t.Parallel()
	for _, p := range []oppolicy.Phase{oppolicy.PhaseForward, oppolicy.PhaseBackward} {
		got, err := oppolicy.ParsePhase(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, got)
	}
	_, err := oppolicy.ParsePhase("backwards")
	require.EqualError(t, err, `unknown phase "backwards", want forward or backward; did you mean "backward"?`)
}

func TestPhaseText(t *testing.T) {
	for _, p := range []oppolicy.Phase{oppolicy.PhaseUnspecified, oppolicy.PhaseForward, oppolicy.PhaseBackward} {
		text, err := p.MarshalText()
		require.NoError(t, err)
		got := oppolicy.PhaseForward
		require.NoError(t, got.UnmarshalText(text))
		assert.Equal(t, p, got)
	}
	var p oppolicy.Phase
	assert.ErrorContains(t, p.UnmarshalText([]byte("sideways")), "want forward or backward")
}
