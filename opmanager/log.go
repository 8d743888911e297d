package opmanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/primus-fl/primus/opregistry"
)

// LogListener writes events as log lines, with the texts that TransformerEngine-FL uses. It writes
// lines that would repeat once for each op, impl and kind of event.
type LogListener struct {
	log *slog.Logger

	mu      sync.Mutex
	seen    map[string]struct{}
	unruled map[string]string // the impl that serves each op without rules
}

// maxSeen bounds the memory for lines that were written. Beyond it, repeated lines are written
// again.
const maxSeen = 4096

// NewLogListener returns a listener that writes to log.
func NewLogListener(log *slog.Logger) *LogListener {
	return &LogListener{log: log, seen: map[string]struct{}{}, unruled: map[string]string{}}
}

// OnEvent writes the line for an event.
func (l *LogListener) OnEvent(e Event) {
	switch e := e.(type) {
	case Registered:
		l.log.Info(fmt.Sprintf("OpManager initialized: %d ops with %d implementations", e.Ops, e.Impls))
		l.log.Info(fmt.Sprintf("Registered impl_ids: ['%s']", strings.Join(e.IDs, "', '")))
	case Selected:
		level := slog.LevelInfo
		if e.Rules == "" {
			l.setUnruled(e.Op, e.Impl.ID)
		} else if l.isUnruled(e.Op, e.Impl.ID) {
			level = slog.LevelDebug // the rules changed nothing for this op
		}
		l.log.Log(context.Background(), level, fmt.Sprintf("Op '%s' using '%s' %s%s", e.Op, e.Impl.ID, e.Impl.detail(), underRules(e.Rules)))
	case Switched:
		l.once("switch", e.Op, e.From.ID+">"+e.To.ID+e.Rules, func() {
			l.log.Info(fmt.Sprintf("Op '%s' switched from '%s' to '%s' %s%s", e.Op, e.From.ID, e.To.ID, e.To.detail(), underRules(e.Rules)))
		})
	case FellBack:
		l.once("fallback", e.Op, e.From.ID+">"+e.To.ID, func() {
			l.log.Info(fmt.Sprintf("Op '%s' fallback to '%s' %s", e.Op, e.To.ID, e.To.detail()))
		})
	case Failed:
		l.failed(e)
	case Quarantined:
		if e.Until.IsZero() {
			l.log.Warn(fmt.Sprintf("Implementation '%s' quarantined for op '%s' until it is cleared, because a result was wrong", e.Impl.ID, e.Op))
			break
		}
		l.log.Warn(fmt.Sprintf("Implementation '%s' quarantined for op '%s' until %s after %d failures", e.Impl.ID, e.Op, e.Until.Format("15:04:05"), e.Failures))
	case Released:
		l.log.Info(fmt.Sprintf("Implementation '%s' released from quarantine for op '%s'", e.Impl.ID, e.Op))
	case VerificationFailed:
		l.once("verify", e.Op, e.Impl.ID, func() {
			l.log.Warn(fmt.Sprintf("Implementation '%s' failed verification for op '%s': %s", e.Impl.ID, e.Op, e.Error()))
		})
	case CanaryChanged:
		level := slog.LevelInfo
		if e.Canary.State == CanaryWithdrawn {
			level = slog.LevelWarn
		}
		l.log.Log(context.Background(), level, fmt.Sprintf("Op '%s' canary %s", e.Canary.Op, e.Canary))
	case CrossedDevice:
		l.once("across", e.Op, e.Impl.ID+e.Places, func() {
			l.log.Warn(fmt.Sprintf("Op '%s' runs on the host by '%s': %s on %s, so they are copied in each call (%d bytes in, %d out)", e.Op, e.Impl.ID, e.Why, e.Places, e.BytesIn, e.BytesOut))
		})
	case PolicyPutBack:
		l.log.Warn(e.String(), "op", e.Op, "generation", e.Generation)
	case PolicyChanged:
		l.log.Info("policy changed", "generation", e.Generation)
	}
}

func (l *LogListener) setUnruled(op, impl string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unruled[op] = impl
}

func (l *LogListener) isUnruled(op, impl string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unruled[op] == impl
}

func (l *LogListener) failed(e Failed) {
	cause := e.Err
	var impl *opregistry.ImplError
	stack := ""
	if errors.As(e.Err, &impl) {
		cause, stack = impl.Err, string(impl.Stack)
	}
	if e.Declined {
		l.once("decline", e.Op, e.Impl.ID, func() {
			l.log.Info(fmt.Sprintf("Implementation '%s' declined op '%s': %v", e.Impl.ID, e.Op, cause))
		})
		return
	}
	l.once("fail", e.Op, e.Impl.ID, func() {
		var attrs []any
		if stack != "" {
			attrs = append(attrs, "stack", stack)
		}
		l.log.Warn(fmt.Sprintf("Implementation '%s' failed for op '%s': %v", e.Impl.ID, e.Op, cause), attrs...)
	})
}

// once calls write for the first event of a kind with this op and subject.
func (l *LogListener) once(kind, op, subject string, write func()) {
	key := kind + " " + op + " " + subject
	l.mu.Lock()
	_, seen := l.seen[key]
	if !seen && len(l.seen) < maxSeen {
		l.seen[key] = struct{}{}
	}
	l.mu.Unlock()
	if !seen {
		write()
	}
}

// detail returns the kind and the vendor of an impl as TransformerEngine-FL writes them, which
// spells a missing vendor None.
func (i ImplInfo) detail() string {
	vendor := i.Vendor
	if vendor == "" {
		vendor = "None"
	}
	return fmt.Sprintf("(kind=%v, vendor=%s)", i.Kind, vendor)
}

var _ Listener = (*LogListener)(nil)
