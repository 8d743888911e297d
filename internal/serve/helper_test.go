package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is the token of alice.
const secret = "correct-horse-battery"

// bench is a service over real impls, and one of vendor acme that fails when it is told to.
type bench struct {
	t       testing.TB
	manager *opmanager.Manager
	hub     *serve.Hub
	board   *runs.Board
	run     backend.Observers
	server  *serve.Server
	log     *primustest.Buffer
	tail    runs.Tail // the log of the run
	acme    func() error
	client  *http.Client
}

func newBench(t testing.TB, edit func(*serve.Config, *serve.Settings)) *bench {
	t.Helper()
	b := &bench{t: t, log: &primustest.Buffer{}, hub: serve.NewHub(), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}))
	require.NoError(t, reg.Register(flagos.Source()))
	require.NoError(t, reg.Register(reference.Source()))
	require.NoError(t, reg.Register(opregistry.Source{Name: "acme", Version: "7", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Run: opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error { return b.acme() }),
	}}}))
	b.acme = func() error { return errors.New("device lost") }
	metricsOf := prometheus.NewRegistry()
	dispatch, err := metrics.NewDispatch(metricsOf)
	require.NoError(t, err)
	b.manager = opmanager.New(reg, oppolicy.Default(), opmanager.Settings{Listeners: []opmanager.Listener{b.hub, dispatch}})
	t.Cleanup(b.manager.Close)
	dispatch.Watch(b.manager)
	b.board = runs.NewBoard(runs.BoardSettings{Stats: b.manager.Stats, Log: &b.tail})
	b.run = backend.Observers{b.board, b.hub}
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("# who may\nalice "+secret+"\n\n"), 0o600))
	cfg := serve.Config{Addr: "127.0.0.1:0", TokenFile: tokens}
	set := serve.Settings{
		Manager: b.manager, Registry: reg, Hub: b.hub, Runs: b.board, Gatherer: metricsOf, Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(b.log, nil)), Ready: b.board.Ready,
	}
	if edit != nil {
		edit(&cfg, &set)
	}
	b.server, err = serve.New(cfg, set)
	require.NoError(t, err)
	require.NoError(t, b.server.Start())
	t.Cleanup(func() { require.NoError(t, b.server.Close(context.WithoutCancel(t.Context()))) })
	return b
}

// setLayer replaces a layer of the policy by that of a text and returns the generation.
func (b *bench) setLayer(kind opmanager.LayerKind, text string) (uint64, error) {
	b.t.Helper()
	l, err := policyfile.Parse(context.Background(), "p.yaml", []byte(text))
	require.NoError(b.t, err)
	return b.manager.PolicyStack().Set(kind, l.PolicyLayer)
}

// add calls residual_add and returns its error.
func (b *bench) add() error {
	vector := func() *tensor.Tensor {
		v, err := tensor.FromSlice([]float32{1, 2, 3}, 3)
		require.NoError(b.t, err)
		return v
	}
	return opmanager.Call(b.manager, norm.ResidualAdd.Name(), norm.ResidualAddArgs{A: vector(), B: vector(), Output: vector()})
}

// reply is what the service answered.
type reply struct {
	status int
	header http.Header
	body   string
}

// problem is an answer that is no success.
type problem struct {
	Title, Detail string
	Status        int
	Errors        []struct{ Message, Location string }
}

func (r reply) problem(t *testing.T) problem {
	t.Helper()
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"), r.body)
	var p problem
	require.NoError(t, json.Unmarshal([]byte(r.body), &p))
	require.Equal(t, r.status, p.Status)
	require.Equal(t, http.StatusText(r.status), p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

// ask sends a request with these headers, each "Name: value".
func (b *bench) ask(method, path, body string, headers ...string) reply {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL()+path, strings.NewReader(body))
	require.NoError(b.t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Add(name, value)
	}
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// The headers of alice.
const (
	bearer = "Authorization: Bearer " + secret
	asYAML = "Content-Type: application/yaml"
)

// read decodes what a path answers.
func read[T any](b *bench, path string) T {
	b.t.Helper()
	got := b.ask(http.MethodGet, path, "")
	require.Equal(b.t, http.StatusOK, got.status, got.body)
	return decode[T](b.t, got.body)
}

func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}
