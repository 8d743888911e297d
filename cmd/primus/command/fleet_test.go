package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/fleet"
	"github.com/primus-fl/primus/cmd/primus/fleet/fleettest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// background runs a command line until the function that it returns is called, which returns its error.
func background(t *testing.T, args ...string) (out, stderr *buffer, stop func() error) {
	t.Helper()
	out, stderr = &buffer{}, &buffer{}
	root := command.NewRoot(command.Streams{Out: out, Err: stderr})
	root.SetArgs(args)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	stopped := false
	stop = func() error {
		cancel()
		stopped = true
		return <-ended
	}
	t.Cleanup(func() {
		if !stopped {
			_ = stop()
		}
	})
	return out, stderr, stop
}

// inFleet starts a run without end in a fleet and waits until it trains.
func inFleet(t *testing.T, etcd string, more ...string) (stderr *buffer, stop func() error) {
	t.Helper()
	l := newLab(t)
	_, stderr, stop = background(t, l.args(append([]string{
		"train_iters=1000000", "lr_decay_iters=1000", "log_interval=50", "--threads", "1", "--metrics-addr", "127.0.0.1:0", "--fleet", etcd,
	}, more...)...)...)
	waitFor(t, stderr, "step 1/")
	return stderr, stop
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

// step returns the number of the last step that a run has told Prometheus.
func step(t *testing.T, metrics string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^primus_train_step(?:\{[^}]*\})? (\S+)$`).FindStringSubmatch(get(t, metrics))
	require.NotNil(t, found)
	return found[1]
}

func TestFleetOfTwoTrainers(t *testing.T) {
	etcd := fleettest.Start(t)
	t.Setenv("PRIMUS_FLEET", etcd.Address)
	one, _ := inFleet(t, etcd.Address)
	two, stopTwo := inFleet(t, etcd.Address, "--prefer", "reference")

	var listed fleet.Snapshot
	got := primus(t, "fleet", "list", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.out), &listed))
	require.Len(t, listed.Members, 2)
	metrics := regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(one.String())
	assert.Contains(t, []string{listed.Members[0].Metrics, listed.Members[1].Metrics}, metrics[1])
	assert.Equal(t, "native", listed.Members[0].Backend)
	assert.Contains(t, get(t, metrics[0]), "\nprimus_fleet_connected 1\n")

	events, _, stopWatch := background(t, "fleet", "watch")
	waitFor(t, events, "joined")

	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("prefer: vendor\nper_op: {rmsnorm_fwd: reference}\n"), 0o600))
	began := time.Now()
	got = primus(t, "fleet", "policy", "apply", policy, "--expect", "0")
	took := time.Since(began)
	require.Zero(t, got.code, got.stderr+got.out)
	assert.Equal(t, 2, strings.Count(got.out, "in force"), got.out)
	t.Logf("two trainers have followed after %v", took)
	assert.Less(t, took, 2*time.Second)
	for _, run := range []*buffer{one, two} {
		assert.Contains(t, run.String(), "policy of the fleet is in force")
	}
	waitFor(t, events, "applied")
	assert.NoError(t, stopWatch())

	got = primus(t, "fleet", "explain", "rmsnorm_fwd")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "2 runs: ", "one answer")
	assert.Contains(t, got.out, "served by reference.go\norder: reference (etcd:/primus/policy@")
	got = primus(t, "fleet", "explain", "swiglu")
	assert.Equal(t, 2, strings.Count(got.out, "1 run: "), "a flag of one run is above the policy: %s", got.out)
	assert.Contains(t, got.out, "(flag --prefer)")
	got = primus(t, "fleet", "explain", "swigul")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, `did you mean "swiglu"`)
	assert.Contains(t, onlyError(t, got), "2 of 2 runs")

	got = primus(t, "fleet", "policy", "apply", policy, "--expect", "0")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "someone has changed it")
	got = primus(t, "fleet", "policy", "show")
	assert.Contains(t, got.out, "\nprefer: vendor\n")
	require.NoError(t, os.WriteFile(policy, []byte("prefr: vendor\n"), 0o600))
	got = primus(t, "fleet", "policy", "apply", policy)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), policy+`:1:1: unknown key "prefr"`)

	require.ErrorIs(t, stopTwo(), backend.ErrInterrupted)
	got = primus(t, "fleet", "list")
	assert.Contains(t, got.out, "in force in 1 of 1 run\n")

	etcd.Kill()
	waitFor(t, one, "the fleet cannot be reached; training goes on")
	at := step(t, metrics[0])
	require.Eventually(t, func() bool { return step(t, metrics[0]) != at }, 30*time.Second, 10*time.Millisecond, "training goes on")
	assert.Contains(t, get(t, metrics[0]), "\nprimus_fleet_connected 0\n")
	got = primus(t, "fleet", "list")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "etcd at "+etcd.Address)
}

// A policy that a run cannot use is reported by that run, and one that the sources above it make impossible as well.
func TestFleetReportsRejections(t *testing.T) {
	etcd := fleettest.Start(t)
	c, err := fleet.Open(fleet.Config{Endpoints: []string{etcd.Address}, Prefix: "/p"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.SetPolicy(t.Context(), "from: the future\n", -1)
	require.NoError(t, err)
	stderr, _ := inFleet(t, etcd.Address, "--fleet-prefix", "/p")
	assert.Contains(t, stderr.String(), "policy of the fleet is not used")
	got := primus(t, "fleet", "list", "--fleet", "http://"+etcd.Address, "--fleet-prefix", "/p/")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, "in force in 0 of 1 run")
	assert.Contains(t, got.stderr, `unknown key \"from\"`)
}

// scraped starts the Prometheus of the machine with targets from a URL, and returns a function that asks it.
func scraped(t *testing.T, url string) (query func(string) string) {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus on this machine; scripts/install-test-deps.sh installs it")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte(`scrape_configs:
  - job_name: primus
    scrape_interval: 1s
    http_sd_configs: [{url: "`+url+`", refresh_interval: 1s}]
`), 0o600))
	cmd := exec.Command(path, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address, "--log.level", "error")
	log := &buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitForAddress(t, address, log)
	return func(expr string) string {
		return get(t, "http://"+address+"/api/v1/query?query="+neturl.QueryEscape(expr))
	}
}

func waitForAddress(t *testing.T, address string, log *buffer) {
	t.Helper()
	listening := func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	}
	require.Eventually(t, listening, 30*time.Second, 50*time.Millisecond, log.String())
}

func TestFleetDiscovery(t *testing.T) {
	etcd := fleettest.Start(t)
	_, stopRun := inFleet(t, etcd.Address)
	_, stderr, stop := background(t, "fleet", "sd", "--fleet", etcd.Address, "--listen", "127.0.0.1:0")
	waitFor(t, stderr, "/v1/sd\n")
	url := regexp.MustCompile(`http://\S+`).FindString(stderr.String())
	var groups []fleet.TargetGroup
	require.NoError(t, json.Unmarshal([]byte(get(t, url)), &groups))
	require.Len(t, groups, 1)
	assert.Equal(t, "exp", groups[0].Labels["run"])
	assert.Contains(t, get(t, "http://"+groups[0].Targets[0]+"/metrics"), "primus_train_step")
	resp, err := http.Post(url, "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()

	query := scraped(t, url)
	found := func(expr, text string) func() bool {
		return func() bool { return strings.Contains(query(expr), text) }
	}
	require.Eventually(t, found(`primus_train_step{run="exp",rank="0"} > 0`, `"run":"exp"`), 30*time.Second, 100*time.Millisecond)
	const apart = "max by (run) (primus_fleet_policy_revision) != %s min by (run) (primus_fleet_policy_revision)"
	assert.Contains(t, query(fmt.Sprintf(apart, "bool")), `"0"]`, "the ranks of the run agree")
	assert.Contains(t, query(fmt.Sprintf(apart, "")), `"result":[]`)
	require.ErrorIs(t, stopRun(), backend.ErrInterrupted)
	require.Eventually(t, found(`up{run="exp"}`, `"result":[]`), 30*time.Second, 100*time.Millisecond, "a run that ends is no target any more")
	assert.NoError(t, stop())
}

func TestFleetUsage(t *testing.T) {
	l := newLab(t)
	tests := []struct {
		give []string
		want []string
	}{
		{[]string{"fleet", "lst"}, []string{`did you mean "list"`}},
		{[]string{"fleet", "list"}, []string{"no fleet given", "PRIMUS_FLEET"}},
		{[]string{"fleet", "list", "x"}, []string{`unexpected argument "x"`}},
		{[]string{"fleet", "list", "--fleet", "etcd"}, []string{`"etcd"`, "HOST:PORT"}},
		{[]string{"fleet", "list", "--fleet", "a:1,,b:2"}, []string{`""`, "HOST:PORT"}},
		{[]string{"fleet", "list", "--fleet", "a:1", "--fleet-prefix", "x"}, []string{`prefix "x"`}},
		{[]string{"fleet", "list", "--flet", "a:1"}, []string{"did you mean --fleet?"}},
		{[]string{"fleet", "explain", "--fleet", "a:1"}, []string{"got 0 ops, want one"}},
		{[]string{"fleet", "explain", "a", "--fleet", "a:1", "--patience", "x"}, []string{`--patience: got "x"`, "10s"}},
		{[]string{"fleet", "policy", "apply", "--fleet", "a:1"}, []string{"got 0 policy files, want one"}},
		{[]string{"fleet", "policy", "apply", "x", "--fleet", "a:1", "--expect=-1"}, []string{"--expect: got -1"}},
		{[]string{"fleet", "sd", "--fleet", "a:1", "--listen", "9401"}, []string{`--listen: got "9401"`}},
		{l.args("--fleet", "etcd"), []string{`"etcd"`, "HOST:PORT"}},
		{l.args("--fleet", "https://a:1", "--fleet-cert", "c.pem"), []string{"go together"}},
		{l.args("--fleet-prefix", "/x"), []string{"--fleet-prefix without --fleet"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.give[:min(3, len(tt.give))], " "), func(t *testing.T) {
			got := primus(t, tt.give...)
			assert.Equal(t, 2, got.code, got.stderr)
			for _, want := range tt.want {
				assert.Contains(t, onlyError(t, got), want)
			}
		})
	}
	got := primus(t, "fleet", "list", "--fleet", "https://127.0.0.1:1", "--fleet-ca", "/nonexistent.pem")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "/nonexistent.pem")
	assert.NoDirExists(t, l.workspace)
}
