package spans

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
)

// maxRetry is how long spans are sent again when the endpoint cannot be reached.
const maxRetry = 2 * time.Second

// sender sends spans. What it cannot send it counts and drops.
type sender struct {
	trace.SpanExporter
	where   string
	log     *slog.Logger
	dropped atomic.Int64
}

// ExportSpans sends spans. It warns of the first that it cannot send, and returns no error, which
// the SDK would print.
func (s *sender) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	if s.dropped.Add(int64(len(spans))) == int64(len(spans)) {
		s.log.Warn(fmt.Sprintf("spans: %s accepts no spans, which are dropped; the run goes on: %v", s.where, err))
	}
	return nil
}
