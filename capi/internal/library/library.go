package library

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
)

// Settings are what New needs.
type Settings struct {
	// Lookup returns a variable of the environment as it is now.
	Lookup func(name string) (string, bool)
	// Log receives what managers log; nil drops it.
	Log slog.Handler
}

// Library is the state of libprimus in a process.
type Library struct {
	set      Settings
	ops      map[string]opregistry.Handle
	managers handles[manager]
	bound    handles[bound]
	owners   owners
}

// New returns a Library without managers.
func New(set Settings) *Library {
	if set.Log == nil {
		set.Log = slog.DiscardHandler
	}
	l := &Library{set: set, ops: map[string]opregistry.Handle{}}
	l.managers.kind, l.bound.kind = "manager", "bound op"
	for _, op := range ops.All() {
		l.ops[op.Name()] = op
	}
	return l
}

// warn logs a warning.
func (l *Library) warn(text string) {
	_ = l.set.Log.Handle(context.Background(), slog.NewRecord(timeless, slog.LevelWarn, text, 0))
}

// threadVariables are the variables that say how many threads compute, the first one that is set
// before the others.
var threadVariables = [...]string{"PRIMUS_NUM_THREADS", "OMP_NUM_THREADS"}

// threads returns the number of threads that compute: the one that was asked for, else that of a
// variable, else one for each processor.
func (l *Library) threads(asked uint32) (int, error) {
	if asked > 0 {
		return int(min(asked, maxThreads)), nil
	}
	for _, name := range threadVariables {
		value, _ := l.set.Lookup(name)
		first, _, _ := strings.Cut(value, ",") // OpenMP has one number for each level
		if first = strings.TrimSpace(first); first == "" {
			continue
		}
		n, err := strconv.Atoi(first)
		if err != nil || n < 1 || n > maxThreads {
			return 0, invalid("%s: given %q, want a number of threads from 1 to %d", name, value, maxThreads)
		}
		return n, nil
	}
	return cmp.Or(runtime.NumCPU(), 1), nil
}

const maxThreads = 4096

// named returns an op by its name.
func (l *Library) named(name string) (opregistry.Handle, error) {
	if op, ok := l.ops[name]; ok {
		return op, nil
	}
	return nil, fmt.Errorf("op %q: %w", name, opregistry.ErrNotFound)
}
