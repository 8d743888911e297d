package spans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// The variables that decide whether spans are exported, and where to. Those of traces come before
// those of all signals. The SDK reads the others.
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envDisabled       = "OTEL_SDK_DISABLED"
)

// Settings say whose spans are exported.
type Settings struct {
	Run     string // the experiment
	Rank    int
	Version string // of the program
	Log     *slog.Logger
}

// FromEnvironment returns an Exporter for the endpoint in the environment, nil if there is none or
// the environment turns spans off. It connects to nothing: the first spans do.
func FromEnvironment(s Settings) (*Exporter, error) {
	endpoint, name := firstSet(envTracesEndpoint, envEndpoint)
	exporter, _ := firstSet(envExporter)
	if disabled, _ := firstSet(envDisabled); endpoint == "" || strings.EqualFold(disabled, "true") || exporter == "none" {
		return nil, nil
	}
	if err := errors.Join(checkEndpoint(name, endpoint), checkOneOf("otlp", envExporter), checkOneOf("http/protobuf", envTracesProtocol, envProtocol)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "primus"), attribute.String("service.version", s.Version), attribute.String("primus.run", s.Run), attribute.Int("primus.rank", s.Rank)),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("spans: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: maxRetry / 4, MaxInterval: maxRetry / 2, MaxElapsedTime: maxRetry,
	}))
	if err != nil {
		return nil, fmt.Errorf("spans: %s: %w", name, err)
	}
	to := &sender{SpanExporter: client, where: name + "=" + endpoint, log: s.Log}
	provider := trace.NewTracerProvider(trace.WithResource(about), trace.WithBatcher(to))
	return newExporter(provider, to), nil
}

// firstSet returns the first of some variables that is not empty, and its name.
func firstSet(names ...string) (value, name string) {
	for _, name := range names {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return value, name
		}
	}
	return "", ""
}

func checkEndpoint(name, endpoint string) error {
	if u, err := url.Parse(endpoint); err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return fmt.Errorf("spans: %s: given %q, want a URL such as http://127.0.0.1:4318", name, endpoint)
	}
	return nil
}

// checkOneOf returns an error if the first of some variables that is set has another value than
// the only one that is served.
func checkOneOf(want string, names ...string) error {
	if value, name := firstSet(names...); value != "" && value != want {
		return fmt.Errorf("spans: %s: given %q, want %s", name, value, want)
	}
	return nil
}
