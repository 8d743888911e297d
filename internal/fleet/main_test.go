package fleet_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func TestMain(m *testing.M) {
	primustest.EndChildren()
	goleak.VerifyTestMain(m)
}

// lease is short, so that tests see it end; etcd rounds it up to what it permits.
const lease = 2 * time.Second

// trainer is a run as the fleet sees it: a manager with two impls of an op.
type trainer struct {
	t       *testing.T
	manager *opmanager.Manager
	agent   *fleet.Agent
	log     logBuffer
	tail    runs.Tail

	mu     sync.Mutex
	status fleet.Status
	set    func() fleet.Status // in place of status
}

// is sets how the run gets on.
func (r *trainer) is(s fleet.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = s
}

type logBuffer struct{ primustest.Buffer }

func (b *logBuffer) count(text string) int { return strings.Count(b.String(), text) }

// newTrainer returns a run of this rank that has not started.
func newTrainer(t *testing.T, config fleet.Config, rank int) *trainer {
	t.Helper()
	impl := func(id string, kind opregistry.Kind, vendor string, support opregistry.Support) opregistry.Impl {
		return opregistry.Impl{
			Op: norm.ResidualAdd, ID: id, Kind: kind, Vendor: vendor, Priority: 100, Support: support,
			Run: func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil },
		}
	}
	registry := opregistry.NewRegistry()
	require.NoError(t, registry.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{
		impl("default.flagos", opregistry.KindFlagos, "", opregistry.Support{}),
		impl("vendor.acme", opregistry.KindVendor, "acme", opregistry.Support{DTypes: []tensor.DType{tensor.BF16}}),
	}}))
	r := &trainer{t: t, status: fleet.Status{State: fleet.StateTraining}, manager: opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})}
	t.Cleanup(r.manager.Close)
	agent, err := fleet.NewAgent(fleet.Settings{
		Config:   config,
		Identity: fleet.Identity{Experiment: "exp/1", Backend: "native", Rank: rank, WorldSize: 2, Host: "host", Metrics: fmt.Sprintf("127.0.0.1:94%02d", rank)},
		Manager:  r.manager,
		Log:      slog.New(slog.NewTextHandler(&r.log, nil)), Lease: lease,
		Status: func() fleet.Status {
			r.mu.Lock()
			set, status := r.set, r.status
			r.mu.Unlock()
			if set != nil {
				return set()
			}
			return status
		},
		Tail: r.tail.Since,
	})
	require.NoError(t, err)
	r.agent = agent
	t.Cleanup(agent.Close)
	return r
}

// start begins the runs of a fleet, rank by rank.
func start(t *testing.T, config fleet.Config, n int) []*trainer {
	t.Helper()
	runs := make([]*trainer, n)
	for rank := range runs {
		runs[rank] = newTrainer(t, config, rank)
		runs[rank].agent.Start(t.Context())
		require.True(t, runs[rank].agent.State().Connected, runs[rank].log.String())
	}
	return runs
}

func open(t *testing.T, config fleet.Config) *fleet.Client {
	t.Helper()
	c, err := fleet.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func members(t *testing.T, c *fleet.Client) []fleet.Member {
	t.Helper()
	s, err := c.Snapshot(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.Strange)
	return s.Members
}

// answers says that a client has found its way back to etcd.
func answers(t *testing.T, c *fleet.Client) func() bool {
	return func() bool {
		_, err := c.Snapshot(t.Context())
		return err == nil
	}
}

func (r *trainer) prefers(kind opregistry.Kind) func() bool {
	return func() bool { return r.manager.Policy().Prefer == kind }
}

// soon waits for something that takes as long as the machine is slow.
func soon(t *testing.T, what func() bool, why ...any) {
	t.Helper()
	text := "a change"
	if len(why) > 0 {
		text = fmt.Sprintf(fmt.Sprint(why[0]), why[1:]...)
	}
	primustest.Wait{What: text, Until: what, Report: primustest.Stacks}.Do(t)
}

func fleetAt(address string) fleet.Config { return fleet.Config{Endpoints: []string{address}} }
