package spans_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/spans"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector that speaks OTLP over HTTP.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	paths   map[string]bool
	headers http.Header
	got     []*otlp.ResourceSpans
}

func newReceiver(t *testing.T, status int) *receiver {
	r := &receiver{paths: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		assert.NoError(t, err)
		var sent collector.ExportTraceServiceRequest
		assert.NoError(t, proto.Unmarshal(body, &sent))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.paths[req.URL.Path], r.headers = true, req.Header
		r.got = append(r.got, sent.ResourceSpans...)
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// spans returns what was received, by name.
func (r *receiver) spans() map[string][]*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]*otlp.Span{}
	for _, each := range r.got {
		for _, scope := range each.ScopeSpans {
			for _, s := range scope.Spans {
				all[s.Name] = append(all[s.Name], s)
			}
		}
	}
	return all
}

func attributes(list []*common.KeyValue) map[string]*common.AnyValue {
	all := map[string]*common.AnyValue{}
	for _, a := range list {
		all[a.Key] = a.Value
	}
	return all
}

type args struct {
	X *tensor.Tensor `op:"0 x update f32 [n]"`
}

var op = opregistry.NewOp("some", opregistry.Schema[args]{})

// run makes a run of two steps under the variables that are set.
func run(t *testing.T, log *slog.Logger) {
	e, err := spans.FromEnvironment(spans.Settings{Run: "small", Rank: 3, Version: "v1", Log: log})
	require.NoError(t, err)
	require.NotNil(t, e)
	defer e.Close()
	fail := false
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{{Op: op, ID: "reference.go", Kind: opregistry.KindReference,
		Run: opregistry.Func[args](func(*opregistry.Exec, args) error {
			if fail {
				return errors.New("no memory")
			}
			return nil
		})}}}))
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer m.Close()
	defer m.Tap(e)()
	x, err := tensor.FromSlice([]float32{1, 2})
	require.NoError(t, err)
	forward, backward := opmanager.MustBind(m.Layer(0).Phase(oppolicy.PhaseForward), op), opmanager.MustBind(m.Layer(0).Phase(oppolicy.PhaseBackward), op)
	e.RunStarted(backend.Run{Model: "tiny", FirstStep: 1, Steps: 2})
	require.NoError(t, forward.Call(args{x}))
	require.NoError(t, forward.Call(args{x}))
	require.NoError(t, backward.Call(args{x}))
	e.StepDone(backend.Step{Step: 1, Loss: 2.5, Duration: time.Millisecond})
	fail = true
	require.Error(t, forward.Call(args{x}))
	e.StepDone(backend.Step{Step: 2, Duration: time.Millisecond})
	e.RunEnded(backend.Result{LastStep: 2, Err: errors.New("no memory")})
}

func TestExport(t *testing.T) {
	to := newReceiver(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=research")
	var log bytes.Buffer
	run(t, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Empty(t, log.String())
	assert.Equal(t, map[string]bool{"/v1/traces": true}, to.paths)
	assert.Equal(t, "Bearer abc", to.headers.Get("Authorization"))

	about := attributes(to.got[0].Resource.Attributes)
	for key, want := range map[string]string{"service.name": "primus", "service.version": "v1", "primus.run": "small", "team": "research", "telemetry.sdk.language": "go"} {
		assert.Equal(t, want, about[key].GetStringValue(), key)
	}
	assert.EqualValues(t, 3, about["primus.rank"].GetIntValue())

	all := to.spans()
	require.Len(t, all["run"], 1)
	require.Len(t, all["step"], 2)
	require.Len(t, all["spans_test forward"], 2, "the family is the package of the arguments")
	require.Len(t, all["spans_test backward"], 1)
	first, forward, backward := all["step"][0], all["spans_test forward"][0], all["spans_test backward"][0]
	assert.EqualValues(t, 1, attributes(first.Attributes)["primus.step"].GetIntValue())
	assert.InDelta(t, 2.5, attributes(first.Attributes)["primus.loss"].GetDoubleValue(), 0)
	assert.Equal(t, all["run"][0].SpanId, first.Links[0].SpanId)
	for _, child := range []*otlp.Span{forward, backward} {
		assert.Equal(t, first.SpanId, child.ParentSpanId)
		assert.Equal(t, first.TraceId, child.TraceId)
		assert.GreaterOrEqual(t, child.StartTimeUnixNano, first.StartTimeUnixNano)
		assert.LessOrEqual(t, child.EndTimeUnixNano, first.EndTimeUnixNano)
	}
	assert.NotEqual(t, first.TraceId, all["step"][1].TraceId)
	assert.EqualValues(t, 2, attributes(forward.Attributes)["primus.calls"].GetIntValue())
	assert.EqualValues(t, 16, attributes(forward.Attributes)["primus.bytes"].GetIntValue())
	assert.Equal(t, "reference.go", attributes(forward.Attributes)["primus.impls"].GetArrayValue().Values[0].GetStringValue())
	assert.Equal(t, "1 of 1 calls returned an error", all["spans_test forward"][1].Status.Message)
	assert.Equal(t, "no memory", all["run"][0].Status.Message)
}

// Whoever starts the program has the last word on its name.
func TestServiceName(t *testing.T) {
	to := newReceiver(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to.URL+"/custom")
	t.Setenv("OTEL_SERVICE_NAME", "other")
	run(t, slog.New(slog.DiscardHandler))
	assert.Equal(t, map[string]bool{"/custom": true}, to.paths)
	assert.Equal(t, "other", attributes(to.got[0].Resource.Attributes)["service.name"].GetStringValue())
}

// An endpoint that refuses spans is one warning, and another one at the end.
func TestRefused(t *testing.T) {
	to := newReceiver(t, http.StatusForbidden)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	var log bytes.Buffer
	run(t, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Equal(t, 1, strings.Count(log.String(), "the run goes on"), log.String())
	assert.Contains(t, log.String(), "6 spans were dropped because OTEL_EXPORTER_OTLP_ENDPOINT="+to.URL)
}

func TestUnreachable(t *testing.T) {
	to := newReceiver(t, http.StatusOK)
	to.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	var log bytes.Buffer
	run(t, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Equal(t, 1, strings.Count(log.String(), "the run goes on"), log.String())
	assert.Contains(t, log.String(), "6 spans were dropped")
}

func TestFromEnvironment(t *testing.T) {
	off := func(env ...string) func(*testing.T) {
		return func(t *testing.T) {
			for i := 0; i < len(env); i += 2 {
				t.Setenv(env[i], env[i+1])
			}
			e, err := spans.FromEnvironment(spans.Settings{})
			require.NoError(t, err)
			assert.Nil(t, e)
			e.Close()
		}
	}
	wrong := func(want string, env ...string) func(*testing.T) {
		return func(t *testing.T) {
			for i := 0; i < len(env); i += 2 {
				t.Setenv(env[i], env[i+1])
			}
			_, err := spans.FromEnvironment(spans.Settings{})
			assert.ErrorContains(t, err, want)
		}
	}
	const endpoint, url = "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"
	t.Run("no endpoint", off())
	t.Run("disabled", off(endpoint, url, "OTEL_SDK_DISABLED", "true"))
	t.Run("no exporter", off(endpoint, url, "OTEL_TRACES_EXPORTER", "none"))
	t.Run("no URL", wrong(`OTEL_EXPORTER_OTLP_ENDPOINT: given "127.0.0.1:4318", want a URL`, endpoint, "127.0.0.1:4318"))
	t.Run("protocol", wrong(`OTEL_EXPORTER_OTLP_PROTOCOL: given "grpc", want http/protobuf`, endpoint, url, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"))
	t.Run("exporter", wrong(`OTEL_TRACES_EXPORTER: given "zipkin", want otlp`, endpoint, url, "OTEL_TRACES_EXPORTER", "zipkin"))
	t.Run("attributes", wrong("OTEL_RESOURCE_ATTRIBUTES", endpoint, url, "OTEL_RESOURCE_ATTRIBUTES", "team"))
}
