package oppolicy

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type fixture struct {
	ID    string            `json:"id"`
	Op    string            `json:"op"`
	Env   map[string]string `json:"env"`
	Impls []struct {
		Op        string          `json:"op"`
		ID        string          `json:"impl_id"`
		Kind      string          `json:"kind"`
		Vendor    string          `json:"vendor"`
		Priority  int             `json:"priority"`
		Available json.RawMessage `json:"available"`
	} `json:"impls"`
	Ours *struct {
		Candidates []string `json:"candidates"`
		Error      string   `json:"error"`
	} `json:"ours"`
}

// TestConformance replays the selection cases that were recorded from the public
// system, with the answers that this project's rules give.
func TestConformance(t *testing.T) {
	ran := 0
	primustest.EachLine(t, primustest.Recorded(t, "te-fl", "conformance.jsonl"), func(line []byte) {
		var f fixture
		require.NoError(t, json.Unmarshal(line, &f))
		if f.Ours == nil {
			return
		}
		ran++
		t.Run(f.ID, func(t *testing.T) {
			got, code := resolveFixture(t, f)
			assert.Equal(t, f.Ours.Error, code)
			if f.Ours.Error == "" {
				assert.Equal(t, f.Ours.Candidates, got)
			}
		})
	})
	require.Positive(t, ran)
}

func resolveFixture(t *testing.T, f fixture) (ids []string, code string) {
	p, err := FromEnvironment(func(name string) (string, bool) {
		v, ok := f.Env[name]
		return v, ok
	})
	if err != nil {
		var policyErr *Error
		require.ErrorAs(t, err, &policyErr)
		return nil, "policy"
	}
	var impls []Candidate
	for _, i := range f.Impls {
		if i.Op != f.Op {
			continue
		}
		kind, err := opregistry.ParseKind(i.Kind)
		require.NoError(t, err)
		c := Candidate{ID: i.ID, Kind: kind, Vendor: i.Vendor, Priority: i.Priority}
		if string(i.Available) != "true" {
			c.Unusable = "unavailable"
		}
		impls = append(impls, c)
	}
	order, rejected := p.Select(f.Op, impls, opregistry.NewRegistry().Snapshot().Vendor)
	assert.Len(t, rejected, len(impls)-len(order), "every impl is a candidate or has a reason")
	if len(order) == 0 {
		return nil, "no_candidate"
	}
	for _, i := range order {
		ids = append(ids, impls[i].ID)
	}
	return ids, ""
}
