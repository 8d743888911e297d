package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/opregistry"
)

// A policy that a run refuses, or of which it says nothing, is never that of the fleet.
func TestApplyAsksFirst(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	c := open(t, config)
	runs := start(t, config, 2)
	good, err := c.Apply(t.Context(), "prefer: vendor\n", fleet.ApplySettings{Expect: 0, Patience: time.Minute, Who: "me@here"})
	require.NoError(t, err)
	require.NoError(t, good.Fault())
	require.Len(t, good.Runs, 2)

	unchanged := func(got fleet.Applied, result, reason string) {
		t.Helper()
		assert.Zero(t, got.Revision)
		require.ErrorContains(t, got.Fault(), "nothing has changed")
		seen := map[string]bool{}
		for _, r := range got.Runs {
			if r.Result == result {
				assert.Contains(t, r.Reason, reason)
			}
			seen[r.Result] = true
		}
		assert.True(t, seen[result], "%v", got.Runs)
		s, err := c.Snapshot(t.Context())
		require.NoError(t, err)
		assert.Equal(t, fleet.Policy{Revision: good.Revision, Text: "prefer: vendor\n"}, s.Policy)
		for _, r := range runs {
			assert.Equal(t, opregistry.KindVendor, r.manager.Policy().Prefer)
		}
	}
	bad, err := c.Apply(t.Context(), "prefer: vendr\n", fleet.ApplySettings{Expect: -1, Patience: time.Minute})
	require.NoError(t, err)
	unchanged(bad, "refused", "vendr")
	silent(t, config, "silent")
	bad, err = c.Apply(t.Context(), "prefer: flagos\n", fleet.ApplySettings{Expect: -1, Patience: time.Second})
	require.NoError(t, err)
	unchanged(bad, "refused", "no answer within 1s")
	_, err = c.Apply(t.Context(), "prefer: flagos\n", fleet.ApplySettings{Expect: good.Revision - 1, Patience: time.Second})
	var conflict *fleet.ConflictError
	require.ErrorAs(t, err, &conflict)

	history, err := c.History(t.Context())
	require.NoError(t, err)
	require.Len(t, history, 1, "of what was set")
	assert.Equal(t, "me@here apply", history[0].Who+" "+history[0].Why)
	assert.Equal(t, good.Revision, history[0].Revision)
}

// A run that comes after the others were asked and does not take the policy brings the one before
// back, unless that is not wanted.
func TestApplyTakesBack(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	c := open(t, config)
	run := start(t, config, 1)[0]
	first, err := c.Apply(t.Context(), "prefer: vendor\n", fleet.ApplySettings{Expect: 0, Patience: time.Minute})
	require.NoError(t, err)
	comes := func(r fleet.RunResult) {
		if r.Result == "usable" {
			silent(t, config, "late")
		}
	}
	got, err := c.Apply(t.Context(), "prefer: reference\n", fleet.ApplySettings{Expect: -1, Patience: time.Second, Notify: comes})
	require.NoError(t, err)
	require.NotNil(t, got.Rollback)
	require.ErrorContains(t, got.Fault(), "not in force in 1 of 2 runs")
	s, err := c.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, fleet.Policy{Revision: got.Rollback.Revision, Text: "prefer: vendor\n"}, s.Policy)
	soon(t, run.prefers(opregistry.KindVendor))
	gone(t, config, "late")

	got, err = c.Apply(t.Context(), "prefer: reference\n", fleet.ApplySettings{Expect: -1, Patience: time.Second, Notify: comes, Keep: true})
	require.NoError(t, err)
	assert.Nil(t, got.Rollback)
	require.ErrorContains(t, got.Fault(), "it stays the policy of the fleet")
	gone(t, config, "late")

	back, err := c.Rollback(t.Context(), 0, fleet.ApplySettings{Expect: got.Revision, Patience: time.Minute})
	require.NoError(t, err)
	require.NoError(t, back.Fault())
	soon(t, run.prefers(opregistry.KindVendor))
	_, err = c.Rollback(t.Context(), first.Revision+1000, fleet.ApplySettings{Expect: -1, Patience: time.Minute})
	require.ErrorContains(t, err, "want one of the history")
	back, err = c.Rollback(t.Context(), got.Revision, fleet.ApplySettings{Expect: -1, Patience: time.Minute})
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindReference))
	history, err := c.History(t.Context())
	require.NoError(t, err)
	assert.Equal(t, back.Revision, history[len(history)-1].Revision)
	var whys []string
	for _, change := range history {
		whys = append(whys, change.Why)
	}
	assert.Equal(t, "apply", whys[1])
	assert.Contains(t, whys[2], "was not in force in 1 of 2 runs")
	assert.Contains(t, whys[5], "rollback to")
}

// silent puts the record of a run into the fleet that answers nothing, as one that was killed a
// moment ago.
func silent(t *testing.T, config fleet.Config, id string) {
	t.Helper()
	text, err := json.Marshal(fleet.Member{ID: id, Identity: fleet.Identity{Experiment: id, WorldSize: 1}})
	require.NoError(t, err)
	_, err = raw(t, config).Put(t.Context(), "/primus/runs/"+id, string(text))
	require.NoError(t, err)
}

func gone(t *testing.T, config fleet.Config, id string) {
	t.Helper()
	_, err := raw(t, config).Delete(t.Context(), "/primus/runs/"+id)
	require.NoError(t, err)
}

// raw is a client of etcd.
func raw(t *testing.T, config fleet.Config) *clientv3.Client {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: config.Endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, etcd.Close()) })
	return etcd
}
