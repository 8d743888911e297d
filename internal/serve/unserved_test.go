package serve_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/policytest"
	"github.com/primus-fl/primus/internal/serve"
)

// A policy by request does not end a run, and a proposal says before whether it will be refused.
func TestRandomPoliciesByRequest(t *testing.T) {
	accepted, refused, back := 0, 0, 0
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 3))
		r := policytest.New(t, random, nil)
		require.NoError(t, r.Announce())
		b := newBench(t, func(_ *serve.Config, s *serve.Settings) { s.Manager = r.Manager })
		for range 40 {
			text := policytest.Text(random)
			got := b.ask(http.MethodPost, "/v1/policy/proposal", text, bearer, asYAML)
			require.Equal(t, http.StatusOK, got.status, got.body)
			proposal := decode[serve.Proposal](t, got.body)
			r.Try(func() error {
				got := b.apply(r.Manager.Generation(), text)
				require.Equal(t, proposal.Refused == "", got.status == http.StatusOK, "%s: %s", got.body, proposal.Refused)
				if got.status != http.StatusOK {
					return errors.New(got.body)
				}
				return nil
			})
		}
		accepted, refused, back = accepted+r.Accepted, refused+r.Refused, back+len(r.Manager.PolicyStack().PutBack())
	}
	t.Logf("%d policies accepted, %d refused, %d put back", accepted, refused, back)
	assert.Greater(t, accepted, 300)
	assert.Greater(t, refused, 50)
	assert.Greater(t, back, 10)
}
