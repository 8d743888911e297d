package fleet_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inFleet starts a run without end in a fleet and waits until it trains.
func inFleet(t *testing.T, etcd string, more ...string) *commandtest.Background {
	t.Helper()
	l := commandtest.NewLab(t)
	run := commandtest.Start(t, l.Args(append([]string{
		"train_iters=1000000", "lr_decay_iters=1000", "log_interval=50", "--threads", "1", "--metrics-addr", "127.0.0.1:0", "--fleet", etcd,
	}, more...)...)...)
	run.WaitFor("step 1/")
	return run
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
	primustest.Long(t, "it starts a fleet")
	etcd := fleettest.Start(t)
	t.Setenv("PRIMUS_FLEET", etcd.Address)
	one := inFleet(t, etcd.Address, "--serve", "127.0.0.1:0")
	two := inFleet(t, etcd.Address, "--prefer", "reference")

	var listed fleet.Snapshot
	got := commandtest.Run(t, "fleet", "list", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	require.NoError(t, json.Unmarshal([]byte(got.Out), &listed))
	require.Len(t, listed.Members, 2)
	metrics := regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(one.Stderr.String())
	assert.Contains(t, []string{listed.Members[0].Metrics, listed.Members[1].Metrics}, metrics[1])
	assert.Equal(t, "native", listed.Members[0].Backend)
	assert.Contains(t, get(t, metrics[0]), "\nprimus_fleet_connected 1\n")

	watch := commandtest.Start(t, "fleet", "watch")
	watch.WaitFor("joined")

	policy := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("prefer: vendor\nper_op: {rmsnorm_fwd: reference}\nrules: [{layers: 0, phase: forward, prefer: reference}]\n"), 0o600))
	got = commandtest.Run(t, "fleet", "policy", "apply", policy, "--expect", "0")
	require.Zero(t, got.Code, got.Stderr+got.Out)
	assert.Equal(t, 2, strings.Count(got.Out, "in force"), got.Out)
	for _, run := range []*commandtest.Background{one, two} {
		assert.Contains(t, run.Stderr.String(), "policy of the fleet is in force")
	}
	watch.WaitFor("applied")
	assert.NoError(t, watch.Stop())

	got = commandtest.Run(t, "fleet", "explain", "rmsnorm_fwd")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "2 runs: ", "one answer")
	assert.Contains(t, got.Out, "served by reference.go\norder: reference (etcd:/primus/policy@")
	got = commandtest.Run(t, "fleet", "explain", "swiglu")
	assert.Equal(t, 2, strings.Count(got.Out, "1 run: "), "a flag of one run is above the policy: %s", got.Out)
	assert.Contains(t, got.Out, "(flag --prefer)")
	got = commandtest.Run(t, "fleet", "explain", "swiglu", "--layer", "0", "--phase", "forward", "--dtype", "bf16", "--shape", "4,8", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var answers []struct {
		Member      fleet.Member    `json:"run"`
		Explanation json.RawMessage `json:"explanation"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &answers))
	service := regexp.MustCompile(`service on (\S+)/`).FindStringSubmatch(one.Stderr.String())[1]
	for _, a := range answers {
		if a.Member.Metrics == metrics[1] {
			said := get(t, service+"/v1/ops/swiglu/explain?layer=0&phase=forward&dtype=bf16&shape=4,8")
			assert.JSONEq(t, said, string(a.Explanation), "as the run itself says")
			assert.Contains(t, said, `"selected":"reference.go"`)
		}
	}
	got = commandtest.Run(t, "fleet", "explain", "swigul")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, `did you mean "swiglu"`)
	assert.Contains(t, commandtest.OnlyError(t, got), "2 of 2 runs")

	got = commandtest.Run(t, "fleet", "policy", "apply", policy, "--expect", "0")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "someone has changed it")
	got = commandtest.Run(t, "fleet", "policy", "show")
	assert.Contains(t, got.Out, "\nprefer: vendor\n")
	require.NoError(t, os.WriteFile(policy, []byte("prefr: vendor\n"), 0o600))
	got = commandtest.Run(t, "fleet", "policy", "apply", policy)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), policy+`:1:1: unknown key "prefr"`)

	id := listed.Members[0].ID
	got = commandtest.Run(t, "fleet", "logs", id, "--lines", "1000")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "policy of the fleet is in force")
	got = commandtest.Run(t, "fleet", "top", "--count", "2", "--interval", "100ms")
	require.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, 2, strings.Count(got.Out, "2 training; policy "), got.Out)
	assert.Regexp(t, `(?m)^exp-0-\S+ +0/1 +training +\d+/1000000 +\d\.\d{4} +\d\S*s +[\d,]+ +\d\.\d\d % +now$`, got.Out)

	require.ErrorIs(t, two.Stop(), backend.ErrInterrupted)
	got = commandtest.Run(t, "fleet", "list")
	assert.Contains(t, got.Out, "in force in 1 of 1 run\n")
	assert.Contains(t, got.Out, " training ")
	got = commandtest.Run(t, "fleet", "list", "--ended")
	assert.Regexp(t, `(?m)^exp-0-\S+ +0/1 +\S+ +ended 130 +\d+/1000000 `, got.Out)
	assert.Contains(t, got.Stderr, "interrupted")

	etcd.Kill()
	one.WaitFor("the fleet cannot be reached; training continues")
	at := step(t, metrics[0])
	require.Eventually(t, func() bool { return step(t, metrics[0]) != at }, 2*time.Minute, 10*time.Millisecond, "training goes on")
	assert.Contains(t, get(t, metrics[0]), "\nprimus_fleet_connected 0\n")
	got = commandtest.Run(t, "fleet", "list")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "etcd at "+etcd.Address)
}

// A policy that a run cannot use is reported by that run, and one that the sources above it make
// impossible as well.
func TestFleetReportsRejections(t *testing.T) {
	etcd := fleettest.Start(t)
	c, err := fleet.Open(fleet.Config{Endpoints: []string{etcd.Address}, Prefix: "/p"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.SetPolicy(t.Context(), "from: the future\n", -1)
	require.NoError(t, err)
	run := inFleet(t, etcd.Address, "--fleet-prefix", "/p")
	assert.Contains(t, run.Stderr.String(), "policy of the fleet is not used")
	got := commandtest.Run(t, "fleet", "list", "--fleet", "http://"+etcd.Address, "--fleet-prefix", "/p/")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "in force in 0 of 1 run")
	assert.Contains(t, got.Stderr, `unknown key \"from\"`)
}

// A policy that would end the runs of a fleet is refused by each of them before it is set.
func TestFleetRefusesAPolicyThatEndsRuns(t *testing.T) {
	t.Parallel()
	etcd := fleettest.Start(t)
	run := inFleet(t, etcd.Address)
	dir := t.TempDir()
	apply := func(text string, args ...string) commandtest.Outcome {
		file := commandtest.PolicyIn(t, dir, "policy.yaml", text)
		return commandtest.Run(t, append([]string{"fleet", "policy", "apply", file, "--fleet", etcd.Address, "--patience", "1m"}, args...)...)
	}
	const dead = "per_op: {generic_gemm: vendor:nvidia}\n"

	got := apply(dead)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, `op "generic_gemm" is in use, served by default.flagos`)
	assert.Contains(t, commandtest.OnlyError(t, got), "nothing has changed: 1 of 1 run cannot use the policy")
	got = commandtest.Run(t, "fleet", "policy", "show", "--fleet", etcd.Address)
	assert.Contains(t, got.Stderr, "the fleet has no policy")

	got = apply("prefer: vendor\n", "-o", "json")
	require.Zero(t, got.Code, got.Stderr+got.Out)
	assert.NotContains(t, got.Out, "rollback")
	got = apply(dead, "-o", "json")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, `"result": "refused"`)
	assert.Contains(t, got.Out, `"revision": 0`)
	got = apply("prefer: flagos\nstrict: false\n", "--watch")
	require.Zero(t, got.Code, got.Stderr+got.Out)
	assert.Regexp(t, `(?m) usable    \S+, rank 0/1 on [^\n]*\n.* in force  \S+, rank 0/1 on `, got.Stderr)
	got = commandtest.Run(t, "fleet", "policy", "history", "--diff", "--fleet", etcd.Address)
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?s)^policy \d+, \S+ \S+, \S+@\S+, apply\n  \+ prefer: vendor\npolicy .*apply\n  - prefer: vendor\n  \+ prefer: flagos\n  \+ strict: false\n$`, got.Out)
	got = commandtest.Run(t, "fleet", "policy", "rollback", "--fleet", etcd.Address, "--patience", "1m")
	require.Zero(t, got.Code, got.Stderr+got.Out)
	got = commandtest.Run(t, "fleet", "policy", "show", "--fleet", etcd.Address)
	assert.Contains(t, got.Out, "\nprefer: vendor\n")
	got = commandtest.Run(t, "fleet", "list", "--fleet", etcd.Address)
	assert.Contains(t, got.Out, "in force in 1 of 1 run")

	address := regexp.MustCompile(`http://\S+/metrics`).FindString(run.Stderr.String())
	at := step(t, address)
	require.Eventually(t, func() bool { return step(t, address) != at }, 2*time.Minute, 10*time.Millisecond, "training goes on")
	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)
}

// Of three runs one refuses a policy because of its own flags. Each says whether it could use the
// policy, nothing changes in any of them, and all train on.
func TestFleetOfThreeOneRefuses(t *testing.T) {
	primustest.Long(t, "it starts a fleet")
	t.Parallel()
	etcd := fleettest.Start(t)
	runs := map[string]*commandtest.Background{}
	for name, more := range map[string][]string{"first": nil, "second": nil, "refuses": {"--deny-vendors", "gonum"}} {
		runs[name] = inFleet(t, etcd.Address, append(more, "exp_name="+name)...)
	}
	apply := func(args ...string) (got commandtest.Outcome, results map[string]string) {
		file := commandtest.PolicyIn(t, t.TempDir(), "policy.yaml", "per_op: {generic_gemm: vendor:gonum}\n")
		got = commandtest.Run(t, append([]string{"fleet", "policy", "apply", file, "--fleet", etcd.Address, "--patience", "1m", "-o", "json"}, args...)...)
		var answer struct {
			Runs []struct{ Run, Result, Reason string }
		}
		require.NoError(t, json.Unmarshal([]byte(got.Out), &answer), got.Out+got.Stderr)
		results = map[string]string{}
		for _, r := range answer.Runs {
			name, _, _ := strings.Cut(r.Run, "-")
			results[name] = strings.TrimSpace(r.Result + " " + r.Reason)
		}
		return got, results
	}
	got, results := apply()
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "nothing has changed: 1 of 3 runs cannot use the policy")
	assert.Equal(t, "usable", results["first"])
	assert.Equal(t, "usable", results["second"])
	assert.Regexp(t, `^refused .*op "generic_gemm" is in use`, results["refuses"])
	assert.Contains(t, results["refuses"], "vendor gonum is denied by")

	asInTheGuide(t, commandtest.Run(t, "fleet", "list", "--fleet", etcd.Address).Out, "run rank host state step loss seen policy decisions since")

	got = commandtest.Run(t, "fleet", "policy", "apply", commandtest.PolicyIn(t, t.TempDir(), "none.yaml", "{}\n"), "--fleet", etcd.Address, "--patience", "1m")
	require.Zero(t, got.Code, got.Stderr)
	asInTheGuide(t, got.Out, "run rank host policy generation reason")
	for name := range runs {
		assert.NotContains(t, runs[name].Stderr.String(), "Op 'generic_gemm' switched", name)
	}
	for name, run := range runs {
		address := regexp.MustCompile(`http://\S+/metrics`).FindString(run.Stderr.String())
		at := step(t, address)
		require.Eventually(t, func() bool { return step(t, address) != at }, 2*time.Minute, 10*time.Millisecond, "%s trains on", name)
	}
}

// asInTheGuide checks that a table has these columns, here and in docs/howto/fleet.md.
func asInTheGuide(t *testing.T, table, columns string) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", "howto", "fleet.md"))
	require.NoError(t, err)
	names := func(line string) string {
		return commandtest.OneSpace(regexp.MustCompile(`\b\d+\b`).ReplaceAllString(line, ""))
	}
	header, _, _ := strings.Cut(table, "\n")
	assert.Equal(t, columns, names(header))
	shown := false
	for line := range strings.Lines(string(guide)) {
		shown = shown || names(line) == columns
	}
	assert.True(t, shown, "docs/howto/fleet.md shows a table with the columns %s", columns)
}

// targets asks a list of targets, as Prometheus does.
func targets(t *testing.T, url string) (groups []fleet.TargetGroup) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(get(t, url)), &groups))
	return groups
}

// Prometheus finds the runs of a fleet, at whichever address they serve metrics, from each list of
// targets.
func TestFleetDiscovery(t *testing.T) {
	primustest.Long(t, "it starts a fleet")
	t.Parallel()
	etcd := fleettest.Start(t)
	run := inFleet(t, etcd.Address, "--serve", "127.0.0.1:0", "--metrics-addr", "")
	own := regexp.MustCompile(`service on (http://(\S+)/)`).FindStringSubmatch(run.Stderr.String())
	discovery := commandtest.Start(t, "fleet", "sd", "--fleet", etcd.Address, "--listen", "127.0.0.1:0")
	discovery.WaitFor("/v1/sd\n")
	service := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--fleet", etcd.Address)
	urls := []string{regexp.MustCompile(`http://\S+`).FindString(discovery.Stderr.String()), service.Base + "/v1/sd", own[1] + "v1/sd"}
	for _, url := range urls {
		groups := targets(t, url)
		require.Len(t, groups, 1, url)
		assert.Equal(t, []string{own[2]}, groups[0].Targets, url)
		assert.Equal(t, "exp 0 1", groups[0].Labels["run"]+" "+groups[0].Labels["rank"]+" "+groups[0].Labels["__meta_primus_world_size"])
	}
	resp, err := http.Post(urls[0], "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()

	prometheus := commandtest.Discovering(t, urls...)
	prometheus.Answers(t, `count(primus_train_step{run="exp",rank="0",exported_run=""} > 0) == 3`)
	const apart = "max by (run) (primus_fleet_policy_revision) != %s min by (run) (primus_fleet_policy_revision)"
	assert.Equal(t, []commandtest.Sample{{Labels: map[string]string{"run": "exp"}, Value: 0}}, prometheus.Answers(t, fmt.Sprintf(apart, "bool")), "the ranks of the run agree")
	different, err := prometheus.Query(fmt.Sprintf(apart, ""), time.Now())
	require.NoError(t, err)
	assert.Empty(t, different)
	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)
	prometheus.Answers(t, `absent(up{run="exp",job=~"primus-[01]"})`) // a run that ends is no target any more
	assert.NoError(t, discovery.Stop())

	etcd.Kill()
	code, text := service.Ask(http.MethodGet, "/v1/sd", "")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "etcd at "+etcd.Address)
	require.NoError(t, service.Stop())
}

// Without a fleet a service lists itself, or the address that was meant for metrics.
func TestDiscoveryWithoutAFleet(t *testing.T) {
	service := commandtest.StartServing(t, "serve", "--listen", "localhost:0")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(service.Base, "http://"))
	require.NoError(t, err)
	groups := targets(t, service.Base+"/v1/sd")
	require.Len(t, groups, 1)
	assert.Equal(t, []string{"localhost:" + port}, groups[0].Targets)
	assert.Contains(t, get(t, "http://"+groups[0].Targets[0]+"/metrics"), "primus_dispatch_generation")
	require.NoError(t, service.Stop())

	run := commandtest.StartServing(t, commandtest.NewLab(t).Args("train_iters=1000000", "--serve", "127.0.0.1:0", "--metrics-addr", ":0")...)
	groups = targets(t, run.Base+"/v1/sd")
	require.Len(t, groups, 1)
	name, err := os.Hostname()
	require.NoError(t, err)
	port = regexp.MustCompile(`metrics on http://\S+:(\d+)/`).FindStringSubmatch(run.Stderr.String())[1]
	assert.Equal(t, []string{net.JoinHostPort(name, port)}, groups[0].Targets)
	assert.Equal(t, "exp 0 native", groups[0].Labels["run"]+" "+groups[0].Labels["rank"]+" "+groups[0].Labels["__meta_primus_backend"])
	require.ErrorIs(t, run.Stop(), backend.ErrInterrupted)
}

// A service over TLS says so, because Prometheus has to ask it so.
func TestDiscoveryOfAServiceOverTLS(t *testing.T) {
	t.Parallel()
	authority := primustest.NewAuthority(t)
	cert, key := authority.Sign("service")
	service := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool}}}
	resp, err := client.Get(service.Base + "/v1/sd")
	require.NoError(t, err)
	defer resp.Body.Close()
	var groups []fleet.TargetGroup
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&groups))
	require.Len(t, groups, 1)
	assert.Equal(t, []string{strings.TrimPrefix(service.Base, "https://")}, groups[0].Targets)
	assert.Equal(t, "https", groups[0].Labels["__scheme__"])
	require.NoError(t, service.Stop())
}

func TestFleetUsage(t *testing.T) {
	l := commandtest.NewLab(t)
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
		{[]string{"fleet", "explain", "--fleet", "a:1"}, []string{"given 0 ops, want one"}},
		{[]string{"fleet", "explain", "a", "--fleet", "a:1", "--patience", "x"}, []string{`--patience: given "x"`, "10s"}},
		{[]string{"fleet", "explain", "a", "--fleet", "a:1", "--layer=-2"}, []string{"--layer: given -2"}},
		{[]string{"fleet", "explain", "a", "--fleet", "a:1", "--phase", "forwards"}, []string{`--phase: unknown phase "forwards"`}},
		{[]string{"fleet", "policy", "apply", "--fleet", "a:1"}, []string{"given 0 policy files, want one"}},
		{[]string{"fleet", "policy", "apply", "x", "--fleet", "a:1", "--expect=-1"}, []string{"--expect: given -1"}},
		{[]string{"fleet", "policy", "apply", "x", "--fleet", "a:1", "--max-slowdown", "20"}, []string{`--max-slowdown: given "20"`, "20%"}},
		{[]string{"fleet", "policy", "apply", "x", "--fleet", "a:1", "--max-slowdown", "NaN%"}, []string{`--max-slowdown: given "NaN%"`}},
		{[]string{"fleet", "policy", "apply", "x", "--fleet", "a:1", "--trial", "1m"}, []string{"--trial without --max-slowdown"}},
		{[]string{"fleet", "list", "--fleet", "a:1", "--all", "--ended"}, []string{"given --ended and --all, want one of them"}},
		{[]string{"fleet", "logs", "--fleet", "a:1"}, []string{"given 0 runs, want one"}},
		{[]string{"fleet", "logs", "a", "--fleet", "a:1", "--lines", "0"}, []string{"--lines: given 0"}},
		{[]string{"fleet", "top", "--fleet", "a:1", "--interval", "1ms"}, []string{"--interval: given 1ms"}},
		{[]string{"fleet", "sd", "--fleet", "a:1", "--listen", "9401"}, []string{`--listen: given "9401"`}},
		{l.Args("--fleet", "etcd"), []string{`"etcd"`, "HOST:PORT"}},
		{l.Args("--fleet", "https://a:1", "--fleet-cert", "c.pem"), []string{"go together"}},
		{l.Args("--fleet-prefix", "/x"), []string{"--fleet-prefix without --fleet"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.give[:min(3, len(tt.give))], " "), func(t *testing.T) {
			got := commandtest.Run(t, tt.give...)
			assert.Equal(t, 2, got.Code, got.Stderr)
			for _, want := range tt.want {
				assert.Contains(t, commandtest.OnlyError(t, got), want)
			}
		})
	}
	got := commandtest.Run(t, "fleet", "list", "--fleet", "https://127.0.0.1:1", "--fleet-ca", "/nonexistent.pem")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "/nonexistent.pem")
	assert.NoDirExists(t, l.Workspace)
}
