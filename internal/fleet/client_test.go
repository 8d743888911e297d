package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	config := fleetAt(etcd.Address)
	proxy := fleettest.NewProxy(t, etcd.Address)
	c := open(t, config)
	none, err := c.Ask(t.Context(), fleet.Question{Op: "residual_add"}, time.Minute)
	require.NoError(t, err)
	assert.Empty(t, none)

	start(t, config, 1)
	other := newTrainer(t, fleetAt(proxy.Address), 1)
	other.manager.SetPolicy(oppolicy.Policy{Prefer: opregistry.KindVendor, Rules: []oppolicy.Rule{
		{Layers: []oppolicy.LayerRange{{First: 2, Last: 2}}, Phase: oppolicy.PhaseBackward, Deny: []string{"acme"}},
	}})
	other.agent.Start(t.Context())

	for _, tt := range []struct {
		name string
		give fleet.Question
		want [2]string
	}{
		{"every call", fleet.Question{Op: "residual_add"}, [2]string{"default.flagos", "vendor.acme"}},
		{"calls of a dtype", fleet.Question{Op: "residual_add", Call: &opmanager.CallShape{DType: tensor.F32}}, [2]string{"default.flagos", "default.flagos"}},
		{"calls of a layer", fleet.Question{Op: "residual_add", Layer: new(2)}, [2]string{"default.flagos", "vendor.acme"}},
		{"calls of a phase", fleet.Question{Op: "residual_add", Phase: oppolicy.PhaseBackward}, [2]string{"default.flagos", "vendor.acme"}},
		{"calls of both", fleet.Question{Op: "residual_add", Layer: new(2), Phase: oppolicy.PhaseBackward}, [2]string{"default.flagos", "default.flagos"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers, err := c.Ask(t.Context(), tt.give, time.Minute)
			require.NoError(t, err)
			require.Len(t, answers, 2)
			for i, a := range answers {
				require.Empty(t, a.Error)
				assert.Equal(t, i, a.Member.Rank)
				assert.Equal(t, tt.want[i], a.Explanation.Selected)
				assert.Equal(t, tt.give.Call, a.Explanation.Call)
			}
		})
	}
	for want, give := range map[string]fleet.Question{
		`"residual_add"`:               {Op: "residual_ad"}, // the nearest name
		"layer -1, want one from 0 to": {Op: "residual_add", Layer: new(-1)},
	} {
		answers, err := c.Ask(t.Context(), give, time.Minute)
		require.NoError(t, err)
		for _, a := range answers {
			assert.Nil(t, a.Explanation)
			assert.Contains(t, a.Error, want)
		}
	}

	proxy.Block()
	answers, err := c.Ask(t.Context(), fleet.Question{Op: "residual_add"}, 500*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, answers, 2)
	assert.Empty(t, answers[0].Error)
	assert.Equal(t, "no answer within 500ms", answers[1].Error)
	assert.Nil(t, answers[1].Explanation)
}

// etcdctl writes what a Client does not.
func etcdctl(t *testing.T, etcd *fleettest.Etcd, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("etcdctl")
	if err != nil {
		t.Skip("no etcdctl on this machine; scripts/install-test-deps.sh installs it")
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--endpoints", etcd.Address}, args...)...)
	cmd.Env = []string{"ETCDCTL_API=3"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestStrangeRecords(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	config := fleetAt(etcd.Address)
	run := start(t, config, 1)[0]
	c := open(t, config)
	etcdctl(t, etcd, "put", "/primus/runs/a", "nonsense")
	etcdctl(t, etcd, "put", "/primus/runs/b", `{"id":"a"}`)
	etcdctl(t, etcd, "put", "/primus/questions/x", "a question without a lease")
	s, err := c.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Len(t, s.Members, 1)
	require.Len(t, s.Strange, 2)
	assert.Contains(t, s.Strange[0], `"/primus/runs/a"`)
	assert.Contains(t, s.Strange[1], `the record of "a"`)

	_, err = c.SetPolicy(t.Context(), "prefer: vendor", -1)
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindVendor))
	assert.Empty(t, etcdctl(t, etcd, "get", "--prefix", "/primus/answers/"))
	etcdctl(t, etcd, "del", "/primus/policy")
	soon(t, func() bool { return run.agent.State().Policy.Seen == 0 })
	assert.Equal(t, opregistry.KindVendor, run.manager.Policy().Prefer)
}

func TestFleetsApart(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	one := fleet.Config{Endpoints: []string{"http://" + etcd.Address}, Prefix: "/team/one/"}
	two := fleet.Config{Endpoints: []string{etcd.Address}, Prefix: "/team/one/two"}
	run := start(t, one, 1)[0]
	_, err := open(t, two).SetPolicy(t.Context(), "prefer: vendor", -1)
	require.NoError(t, err)
	assert.Empty(t, members(t, open(t, two)))
	assert.Len(t, members(t, open(t, one)), 1)
	_, err = open(t, one).SetPolicy(t.Context(), "prefer: reference", -1)
	require.NoError(t, err)
	soon(t, run.prefers(opregistry.KindReference))
}

// events collects what a Watch tells.
type events struct {
	mu  sync.Mutex
	all []fleet.Event
}

func (e *events) tell(event fleet.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	return nil
}

func (e *events) kinds() []fleet.EventKind {
	e.mu.Lock()
	defer e.mu.Unlock()
	var kinds []fleet.EventKind
	for _, event := range e.all {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

func TestWatch(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	config := fleetAt(etcd.Address)
	c := open(t, config)
	_, err := c.SetPolicy(t.Context(), "{}", -1)
	require.NoError(t, err)
	run := start(t, config, 1)[0]

	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := &events{}, make(chan error, 1)
	go func() { ended <- c.Watch(ctx, seen.tell) }()
	want := []fleet.EventKind{}
	next := func(kinds ...fleet.EventKind) {
		t.Helper()
		want = append(want, kinds...)
		soon(t, func() bool { return len(seen.kinds()) >= len(want) }, "%v", want)
		require.Equal(t, want, seen.kinds())
	}
	next(fleet.EventPolicy, fleet.EventJoined)
	run.manager.SetPolicy(oppolicy.Default())
	next(fleet.EventDispatch)
	revision, err := c.SetPolicy(t.Context(), "prefer: vendor", -1)
	require.NoError(t, err)
	next(fleet.EventPolicy, fleet.EventApplied)
	assert.Equal(t, revision, seen.all[3].Revision)
	assert.Equal(t, revision, seen.all[4].Member.Policy.InForce)
	_, err = c.SetPolicy(t.Context(), "prefer: 7", -1)
	require.NoError(t, err)
	next(fleet.EventPolicy, fleet.EventRejected)
	assert.Contains(t, seen.all[6].Reason, "prefer")
	run.agent.Close()
	next(fleet.EventLeft)
	assert.Equal(t, "exp/1", seen.all[7].Member.Experiment)

	etcd.Kill()
	next(fleet.EventLost)
	etcd.Restart()
	next(fleet.EventFound)
	start(t, config, 1)
	soon(t, func() bool { return slices.Contains(seen.kinds()[len(want):], fleet.EventJoined) })

	cancel()
	require.NoError(t, <-ended)
	stop := errors.New("enough")
	assert.ErrorIs(t, c.Watch(t.Context(), func(fleet.Event) error { return stop }), stop)
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	config := fleetAt(etcd.Address)
	c := open(t, config)
	get := func() (int, string, []fleet.TargetGroup) {
		w := httptest.NewRecorder()
		fleet.Discovery(c).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sd", nil))
		var groups []fleet.TargetGroup
		if w.Code == http.StatusOK {
			assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &groups))
		}
		return w.Code, w.Body.String(), groups
	}
	code, body, _ := get()
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[]", body, "an empty list, not null")

	runs := start(t, config, 2)
	_, _, groups := get()
	require.Len(t, groups, 2)
	assert.Equal(t, fleet.TargetGroup{
		Targets: []string{"127.0.0.1:9401"},
		Labels: map[string]string{
			"run": "exp/1", "rank": "1", "__meta_primus_id": runs[1].agent.State().ID, "__meta_primus_backend": "native",
			"__meta_primus_host": "host", "__meta_primus_version": "", "__meta_primus_world_size": "2",
		},
	}, groups[1])

	etcd.Kill()
	code, body, _ = get()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, body, etcd.Address)
	assert.Equal(t, []fleet.TargetGroup{}, fleet.Targets([]fleet.Member{{ID: "without metrics"}}))
	assert.NotContains(t, groups[1].Labels, "__scheme__")
	assert.Equal(t, "https", fleet.Targets([]fleet.Member{{Identity: fleet.Identity{Metrics: "a:1", MetricsTLS: true}}})[0].Labels["__scheme__"])
}

func TestConfig(t *testing.T) {
	t.Parallel()
	certificates := func(endpoints ...string) fleet.Config {
		return fleet.Config{Endpoints: endpoints, CA: "ca.pem", Cert: "cert.pem", Key: "key.pem"}
	}
	tests := []struct {
		name string
		give fleet.Config
		want string // "" for a valid one
	}{
		{"bare", fleetAt("localhost:2379"), ""},
		{"schemes and a prefix", fleet.Config{Endpoints: []string{"http://a:1", "b:2"}, Prefix: "/a/b/"}, ""},
		{"ipv6", fleetAt("https://[::1]:2379"), ""},
		{"certificates", certificates("https://a:1", "https://b:2"), ""},
		{"nothing", fleet.Config{}, "no endpoints"},
		{"no port", fleetAt("etcd"), `"etcd" has no host or no port`},
		{"no host", fleetAt(":2379"), "has no host"},
		{"port 0", fleetAt("a:0"), "port from 1 to 65535"},
		{"named port", fleetAt("a:etcd"), "is no address"},
		{"path", fleetAt("http://a:1/v3"), "is no address"},
		{"blank", fleetAt("a b:1"), "is no address"},
		{"password", fleetAt("http://user:secret@a:1"), "is no address"},
		{"scheme", fleetAt("unix:///run/etcd"), "another scheme"},
		{"http and https", fleet.Config{Endpoints: []string{"https://a:1", "b:2"}}, "1 of 2 endpoints have https"},
		{"certificates without https", certificates("a:1"), "no endpoint has https"},
		{"certificate without key", fleet.Config{Endpoints: []string{"https://a:1"}, Cert: "c"}, "go together"},
		{"prefix without slash", fleet.Config{Endpoints: []string{"a:1"}, Prefix: "primus"}, `prefix "primus"`},
		{"only a slash", fleet.Config{Endpoints: []string{"a:1"}, Prefix: "/"}, `prefix "/"`},
		{"empty part", fleet.Config{Endpoints: []string{"a:1"}, Prefix: "/a//b"}, `prefix "/a//b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.give.Validate()
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
	_, err := fleet.Open(certificates("https://a:1"))
	assert.ErrorContains(t, err, "ca.pem", "files are read before anything connects")
}
