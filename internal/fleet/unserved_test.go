package fleet

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/policytest"
	"github.com/primus-fl/primus/opmanager"
)

// A policy of the fleet does not end a run. A run that is asked says before whether it can use it,
// and its record says afterwards which one is in force.
func TestRandomPoliciesOfTheFleet(t *testing.T) {
	t.Parallel()
	accepted, refused, back := 0, 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 4))
		r := policytest.New(t, random, nil)
		require.NoError(t, r.Announce())
		a, err := NewAgent(Settings{Config: Config{Endpoints: []string{"127.0.0.1:1"}}, Manager: r.Manager, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		for revision := range int64(40) {
			text := policytest.Text(random)
			usable := checkPolicy(t.Context(), r.Manager, a.keys.policy, text)
			returns := len(r.Manager.PolicyStack().PutBack())
			r.Try(func() error {
				a.takePolicy(t.Context(), revision+1, []byte(text))
				_, err := a.apply(t.Context(), revision+1, []byte(text)) // again: says what takePolicy only logs
				require.Equal(t, usable == nil, err == nil)
				require.Equal(t, usable == nil, a.policy.report.Rejected == "")
				return err
			})
			a.checkInForce()
			report, origin := a.policy.report, r.Manager.PolicyStack().State().Layers[opmanager.LayerFleet].Origin
			if report.InForce > 0 {
				require.Equal(t, policyName(a.keys.policy, report.InForce), origin)
			} else {
				require.Empty(t, origin)
			}
			if len(r.Manager.PolicyStack().PutBack()) > returns {
				require.Contains(t, report.Rejected, "is taken back")
			}
		}
		accepted, refused, back = accepted+r.Accepted, refused+r.Refused, back+len(r.Manager.PolicyStack().PutBack())
	}
	t.Logf("%d policies accepted, %d refused, %d put back", accepted, refused, back)
	assert.Greater(t, accepted, 300)
	assert.Greater(t, refused, 50)
	assert.Greater(t, back, 10)
}
