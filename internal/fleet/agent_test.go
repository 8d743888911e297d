package fleet_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func TestRunsRegister(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	runs := start(t, config, 2)
	runs[0].agent.Start(t.Context())

	c := open(t, config)
	all := members(t, c)
	require.Len(t, all, 2)
	for rank, m := range all {
		assert.Regexp(t, `^exp_1-\d-[0-9a-f]{8}$`, m.ID, "no slash in a key")
		assert.Equal(t, rank, m.Rank)
		assert.Equal(t, "exp/1", m.Experiment)
		assert.Equal(t, runs[rank].manager.Generation(), m.Generation)
		assert.Equal(t, runs[rank].manager.Policy().Fingerprint(), m.Fingerprint)
		assert.Zero(t, m.Policy)
	}
	assert.Equal(t, all[0].Manifest, all[1].Manifest)

	runs[1].manager.SetPolicy(oppolicy.Policy{Prefer: opregistry.KindVendor})
	soon(t, func() bool {
		all = members(t, c)
		return all[1].Generation == runs[1].manager.Generation()
	}, "the record follows the manager")
	assert.NotEqual(t, all[0].Manifest, all[1].Manifest)
	assert.NotEqual(t, all[0].Fingerprint, all[1].Fingerprint)

	runs[0].agent.Close()
	runs[0].agent.Close()
	assert.Len(t, members(t, c), 1, "a run that ends leaves at once")
	assert.False(t, runs[0].agent.State().Connected)
}

func TestRunsFollowThePolicy(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	c := open(t, config)
	first, err := c.SetPolicy(t.Context(), "prefer: vendor\n", 0)
	require.NoError(t, err)
	runs := start(t, config, 2)
	for _, r := range runs {
		assert.Equal(t, opregistry.KindVendor, r.manager.Policy().Prefer, "before training begins")
		assert.Regexp(t, `^etcd:/primus/policy@\d+:1$`, r.manager.Policy().View().Sources["prefer"])
	}

	began := time.Now()
	second, err := c.SetPolicy(t.Context(), "prefer: reference\n", first)
	require.NoError(t, err)
	for _, r := range runs {
		soon(t, r.prefers(opregistry.KindReference))
	}
	t.Logf("two runs have followed after %v", time.Since(began))

	third, err := c.SetPolicy(t.Context(), "prefer: vendr\nstrict: 7\n", second)
	require.NoError(t, err)
	soon(t, func() bool {
		all := members(t, c)
		return all[0].Policy.Seen == third && all[1].Policy.Seen == third
	})
	for i, m := range members(t, c) {
		assert.Equal(t, second, m.Policy.InForce)
		assert.Contains(t, m.Policy.Rejected, `etcd:/primus/policy@`)
		assert.Contains(t, m.Policy.Rejected, `:2:9: strict`, "every fault")
		assert.Equal(t, opregistry.KindReference, runs[i].manager.Policy().Prefer)
		assert.Equal(t, 1, runs[i].log.count("level=WARN"))
		assert.Equal(t, uint64(1), runs[i].agent.State().Rejections)
	}

	_, err = c.SetPolicy(t.Context(), "{}", first)
	var conflict *fleet.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, fleet.ConflictError{Got: third, Want: first}, *conflict)
	_, err = c.SetPolicy(t.Context(), "{}", -1)
	require.NoError(t, err)
	for _, r := range runs {
		soon(t, r.prefers(opregistry.KindFlagos))
	}
}

// A policy whose faults are more than etcd takes is reported all the same.
func TestManyFaultsAreCut(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	c := open(t, config)
	text := &strings.Builder{}
	for range 10000 {
		text.WriteString("unknown_key_é: 1\n")
	}
	revision, err := c.SetPolicy(t.Context(), text.String(), -1)
	require.NoError(t, err)
	run := start(t, config, 1)[0]
	m := members(t, c)[0]
	assert.Equal(t, revision, m.Policy.Seen)
	assert.Less(t, len(m.Policy.Rejected), 5000)
	assert.Zero(t, run.agent.State().Losses)
}

func TestEtcdIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	config := fleetAt(etcd.Address)
	c := open(t, config)
	_, err := c.SetPolicy(t.Context(), "prefer: vendor\n", -1)
	require.NoError(t, err)
	run := start(t, config, 1)[0]

	etcd.Kill()
	soon(t, func() bool { return !run.agent.State().Connected })
	assert.Equal(t, opregistry.KindVendor, run.manager.Policy().Prefer)
	assert.NotEmpty(t, run.agent.State().Problem)
	generation := run.manager.Generation()

	etcd.Restart()
	soon(t, func() bool { return run.agent.State().Connected }, run.log.String())
	assert.Equal(t, generation, run.manager.Generation(), "the policy is the one in force")
	assert.Equal(t, uint64(1), run.agent.State().Losses)
	assert.Equal(t, 1, run.log.count("cannot be reached"), "logged once: %s", run.log.String())
	soon(t, answers(t, c))
	_, err = c.SetPolicy(t.Context(), "prefer: reference\n", -1)
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindReference))

	etcd.Forget()
	etcd.Restart()
	soon(t, func() bool { return run.agent.State().Losses == 2 && run.agent.State().Connected }, run.log.String())
	assert.Equal(t, opregistry.KindReference, run.manager.Policy().Prefer, "the last policy stays")
	assert.Contains(t, run.log.String(), "no longer has a policy")
	soon(t, answers(t, c))
	_, err = c.SetPolicy(t.Context(), "prefer: vendor\n", 0)
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindVendor), "revisions that begin anew are followed, too")
	soon(t, func() bool { return len(members(t, c)) == 1 })
}

func TestPartition(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	proxy := fleettest.NewProxy(t, etcd.Address)
	run := start(t, fleetAt(proxy.Address), 1)[0]
	c := open(t, fleetAt(etcd.Address))
	require.Len(t, members(t, c), 1)

	proxy.Block()
	soon(t, func() bool { return len(members(t, c)) == 0 }, "the lease ends")
	soon(t, func() bool { return !run.agent.State().Connected })
	_, err := c.SetPolicy(t.Context(), "prefer: vendor\n", -1)
	require.NoError(t, err)
	assert.Equal(t, opregistry.KindFlagos, run.manager.Policy().Prefer)

	proxy.Unblock()
	soon(t, run.prefers(opregistry.KindVendor), "what changed meanwhile counts")
	soon(t, func() bool { return len(members(t, c)) == 1 })

	proxy.Block()
	began := time.Now()
	run.agent.Close()
	assert.Less(t, time.Since(began), 10*time.Second, "Close does not wait for etcd")
	soon(t, func() bool { return len(members(t, c)) == 0 })
}

// A fleet that is not there holds nothing up for long, and a run joins it when it comes.
func TestEtcdComesLater(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	etcd.Kill()
	run := newTrainer(t, fleetAt(etcd.Address), 0)
	began := time.Now()
	run.agent.Start(t.Context())
	assert.Less(t, time.Since(began), 10*time.Second)
	state := run.agent.State()
	assert.False(t, state.Connected)
	assert.Contains(t, state.Problem, etcd.Address)
	assert.Contains(t, state.Problem, "no answer within 3s")
	etcd.Restart()
	soon(t, func() bool { return run.agent.State().Connected }, run.log.String())
	assert.Zero(t, run.agent.State().Losses, "what was never there was not lost")
}

func TestCloseWithoutStart(t *testing.T) {
	t.Parallel()
	run := newTrainer(t, fleetAt("127.0.0.1:1"), 0)
	run.agent.Close()
	run.agent.Start(t.Context())
	assert.Equal(t, "not started", run.agent.State().Problem)
	_, err := fleet.NewAgent(fleet.Settings{Log: slog.New(slog.DiscardHandler)})
	assert.ErrorContains(t, err, "no endpoints")
}

func TestStateCountsRejections(t *testing.T) {
	t.Parallel()
	config := fleetAt(fleettest.Start(t).Address)
	c := open(t, config)
	_, err := c.SetPolicy(t.Context(), "nonsense", -1)
	require.NoError(t, err)
	run := newTrainer(t, config, 0)
	assert.False(t, run.agent.State().Connected)
	assert.Zero(t, run.agent.State().Rejections)
	run.agent.Start(t.Context())
	assert.True(t, run.agent.State().Connected)
	assert.Equal(t, uint64(1), run.agent.State().Rejections)
}

// Whoever removes or overwrites a record does not hide the run: it writes the record again, under
// the same lease.
func TestARecordThatIsRemovedComesBack(t *testing.T) {
	t.Parallel()
	address := fleettest.Start(t).Address
	config := fleetAt(address)
	run := start(t, config, 1)[0]
	c := open(t, config)
	key := "/primus/runs/" + members(t, c)[0].ID
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: time.Minute, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer etcd.Close()
	there := func() bool {
		s, err := c.Snapshot(t.Context())
		return err == nil && len(s.Members) == 1 && s.Members[0].Host == "host"
	}
	for _, attack := range []func() error{
		func() error { _, err := etcd.Delete(t.Context(), key); return err },
		func() error {
			_, err := etcd.Put(t.Context(), key, `{"id":"`+run.agent.State().ID+`","host":"elsewhere"}`)
			return err
		},
		func() error { _, err := etcd.Delete(t.Context(), "/primus/runs/", clientv3.WithPrefix()); return err },
	} {
		require.NoError(t, attack())
		soon(t, there, "%s", run.log.String())
	}
	assert.Zero(t, run.agent.State().Losses)
	assert.GreaterOrEqual(t, run.log.count("it is written again"), 1)
	got, err := etcd.Get(t.Context(), key)
	require.NoError(t, err)
	assert.NotZero(t, got.Kvs[0].Lease, "the record goes with the run")
	run.agent.Close()
	assert.Empty(t, members(t, c))
}
