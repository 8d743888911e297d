//go:build unix

package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/fleet/fleettest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inProcess starts a run in a process of its own, which is ended with the test if it is not before.
func inProcess(t *testing.T, env []string, args ...string) (run *primustest.Program, out *primustest.Buffer) {
	t.Helper()
	run, out = primustest.NewProgram(t, commandtest.Child(context.WithoutCancel(t.Context()), env, args...)), &primustest.Buffer{}
	run.Stdout = out
	require.NoError(t, run.Start())
	return run, out
}

// events keeps what a service streams, until the end of the test.
type events struct {
	mu   sync.Mutex
	seen []serve.Event
}

func streamed(t *testing.T, url string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	s := &events{}
	var done sync.WaitGroup
	done.Go(func() {
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var e serve.Event
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
				s.mu.Lock()
				s.seen = append(s.seen, e)
				s.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
		_ = resp.Body.Close()
	})
	return s
}

// find waits for an event.
func (s *events) find(t *testing.T, what string, is func(serve.Event) bool) (found serve.Event) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.seen {
			if is(e) {
				found = e
				return true
			}
		}
		return false
	}, 2*time.Minute, 20*time.Millisecond, "no event: %s", what)
	return found
}

// onlyMember returns the one run of a fleet.
func onlyMember(t *testing.T, etcd string) fleet.Member {
	t.Helper()
	got := commandtest.Run(t, "fleet", "list", "--fleet", etcd, "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var s fleet.Snapshot
	require.NoError(t, json.Unmarshal([]byte(got.Out), &s))
	require.Len(t, s.Members, 1)
	return s.Members[0]
}

// An operator sees on the page that products run on OpenBLAS, lets flagos have them while the run
// goes on, and everything that tells of dispatch tells of this change: the page, the stream of
// events, Prometheus, which has found the run by itself, the fleet, and what the run leaves behind.
func TestEndToEnd(t *testing.T) {
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	const from, to = "vendor.openblas", "default.flagos"
	env := []string{"PRIMUS_ONEDNN=" + commandtest.Absent}
	if reason := commandtest.Unavailable(t, from, env); reason != "" {
		t.Skip(reason)
	}
	etcd := fleettest.Start(t)
	tab := commandtest.NewBrowser(t)
	l := commandtest.NewLab(t)
	run, out := inProcess(t, env, l.Args("train_iters=1000000", "lr_decay_iters=1000", "log_interval=100000", "--threads", "1",
		"--prefer", "vendor", "--serve", "127.0.0.1:0", "--serve-token-file", commandtest.TokenFile(t), "--fleet", etcd.Address)...)
	run.WaitFor("service on ")
	base := commandtest.ServiceIn(run.Log.String())
	prometheus := commandtest.Discovering(t, base+"/v1/sd")
	stream := streamed(t, base+"/v1/events")
	run.WaitFor("Op 'multi_tensor_adam' using")

	// Before: everything says OpenBLAS.
	const calls = `primus_op_calls_total{run="exp",op="generic_gemm",impl="%s"}`
	rate := func(impl, comparison string) string {
		return "rate(" + fmt.Sprintf(calls, impl) + "[4s]) " + comparison
	}
	tab.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(base))
	tab.Sees(`document.querySelector('[data-cell="generic_gemm ` + from + `"]').className === "selected"`)
	tab.Sees(`document.getElementById("link").textContent === "live"`)
	prometheus.Answers(t, rate(from, "> 0"))
	prometheus.Answers(t, rate(to, "== 0"))
	prometheus.Answers(t, `primus_policy_info{run="exp",prefer="vendor"} == 1`)
	before := onlyMember(t, etcd.Address)
	assert.Equal(t, base, "http://"+before.Metrics)

	// The change: look at it first, without it nothing can be applied.
	tab.Do(chromedp.SendKeys("#token", "0123456789abcdef"), chromedp.SendKeys("#document", "prefer: flagos"))
	tab.Sees(`document.getElementById("apply").disabled`)
	tab.Do(chromedp.Click("#propose"))
	tab.Sees(`/generic_gemm: ?` + from + ` → ` + to + `/.test(document.getElementById("diff").textContent)`)
	assert.Equal(t, before.Generation, onlyMember(t, etcd.Address).Generation, "looking changes nothing")
	tab.Sees(`!document.getElementById("apply").disabled`)
	tab.Do(chromedp.Click("#apply"))
	tab.Sees(`/In force since generation \d+/.test(document.getElementById("verdict").textContent)`)

	// After: the page says so,
	tab.Sees(`/generic_gemm: ` + from + ` → ` + to + `/.test(document.getElementById("log").textContent)`)
	tab.Sees(`/another policy is in force/.test(document.getElementById("log").textContent)`)
	tab.Sees(`document.querySelector('[data-cell="generic_gemm ` + to + `"]').className === "selected"`)

	// the stream of events,
	changed := stream.find(t, "another policy", func(e serve.Event) bool { return e.Type == "policy_changed" && e.Generation > before.Generation })
	e := stream.find(t, "another impl", func(e serve.Event) bool { return e.Type == "switched" && e.Op == "generic_gemm" })
	assert.Equal(t, from+" "+to, e.From+" "+e.Impl)

	// the fleet,
	var after fleet.Member
	require.Eventually(t, func() bool {
		after = onlyMember(t, etcd.Address)
		return after.Generation >= changed.Generation
	}, 2*time.Minute, 100*time.Millisecond)
	assert.Equal(t, before.ID, after.ID)
	assert.NotEqual(t, before.Fingerprint, after.Fingerprint)
	assert.NotEqual(t, before.Manifest, after.Manifest, "other decisions")

	// Prometheus,
	prometheus.Answers(t, rate(to, "> 0"))
	prometheus.Answers(t, rate(from, "== 0"))
	prometheus.Answers(t, fmt.Sprintf(`primus_policy_info{run="exp",prefer="flagos",fingerprint=%q} == 1`, after.Fingerprint))
	prometheus.Answers(t, fmt.Sprintf(`primus_dispatch_generation{run="exp"} >= %d`, changed.Generation))
	prometheus.Answers(t, fmt.Sprintf(`primus_op_switches_total{op="generic_gemm",from=%q,to=%q} == 1`, from, to))

	// and what the run leaves behind.
	require.NoError(t, run.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()), run.Log.String())
	rows := commandtest.RowsOf(out.String())
	assert.Contains(t, rows, "generic_gemm "+from)
	assert.Contains(t, rows, "generic_gemm "+to)
	text, err := os.ReadFile(l.Path("dispatch.json"))
	require.NoError(t, err)
	var report struct {
		Generation uint64
		Ops        []struct{ Op, Selected, Source string }
		Impls      []struct {
			Op    string
			ID    string `json:"impl_id"`
			Calls uint64
		}
	}
	require.NoError(t, json.Unmarshal(text, &report))
	assert.GreaterOrEqual(t, report.Generation, changed.Generation)
	assert.Contains(t, report.Ops, struct{ Op, Selected, Source string }{"generic_gemm", to, "service:1"})
	served := map[string]uint64{}
	for _, i := range report.Impls {
		served[i.Op+" "+i.ID] = i.Calls
	}
	assert.Positive(t, served["generic_gemm "+from])
	assert.Positive(t, served["generic_gemm "+to])
	got := commandtest.Run(t, "fleet", "list", "--fleet", etcd.Address)
	assert.Contains(t, got.Out, "no runs")
}
