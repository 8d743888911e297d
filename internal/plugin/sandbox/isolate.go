package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/opregistry"
)

// Isolated is a plugin whose code runs in its own process. Calls are made one at a time: operands
// that are read are copied to memory that both processes share, and those that are written are
// copied back after a call that was served.
type Isolated struct {
	path   string
	report *plugin.Report
	set    Settings
	log    *slog.Logger
	impls  []opregistry.Impl
	list   string // of the impls, as its process has to know them

	mu      sync.Mutex // held in a call; guards what follows
	encoder encoder
	running *process  // nil while no process runs
	ends    int       // of processes, since a call came back
	again   time.Time // when a process may be started
	last    error     // how the last process ended
	closed  bool
}

// Back-off between the end of a process and the start of the next one.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = time.Minute
)

// Isolate returns the plugin in a file that has been probed. The first call starts its process; a
// call after the process has ended starts it again, after a pause. log receives what the plugin
// logs and prints; nil drops it.
func Isolate(path string, report *plugin.Report, catalogue []opregistry.Handle, set Settings, log *slog.Logger) (*Isolated, error) {
	i := &Isolated{path: path, report: report, set: set, log: log}
	known := map[string]opregistry.Handle{}
	for _, op := range catalogue {
		known[op.Name()] = op
	}
	for n, o := range report.Ops {
		op, ok := known[o.Op]
		if !ok {
			return nil, fmt.Errorf("plugin %s: its report names op %q, which the catalogue does not have", path, o.Op)
		}
		if _, err := plugin.Layout(op); err != nil {
			return nil, fmt.Errorf("plugin %s: %w", path, err)
		}
		if len(o.Devices) > 0 {
			return nil, fmt.Errorf("plugin %s: impl %q of op %q serves operands on %s, whose memory only this process sees: do not isolate the plugin, or build its ops for the CPU into a library of their own",
				path, o.Impl, o.Op, strings.Join(o.Devices, ", "))
		}
		i.impls = append(i.impls, opregistry.Impl{
			Op: op, ID: o.Impl, Kind: opregistry.KindVendor, Vendor: o.Vendor, Priority: min(o.Priority, plugin.MaxPriority),
			Run:       opregistry.Untyped(op, func(_ *opregistry.Exec, args any) error { return i.call(n, args) }),
			Available: func() error { return report.Availability(o.Op, o.Impl) }, Determinism: o.Determinism(),
			FlushesSubnormals: o.FlushesSubnormals(),
			Support:           opregistry.Support{Without: o.Without},
		})
	}
	i.list = implList(i.impls)
	if err := opregistry.NewRegistry().Register(i.Source()); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	return i, nil
}

// Source returns the ops of the plugin as a source with the plugin's name.
func (i *Isolated) Source() opregistry.Source {
	return opregistry.Source{Name: i.report.Name, Version: i.report.Version, Impls: i.impls}
}

// call has the process run an impl. Every error leaves the operands as they were.
func (i *Isolated) call(n int, args any) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	impl := i.impls[n]
	if err := i.encoder.encode(impl.Op, args); err != nil {
		return untouched(err)
	}
	if err := i.ready(); err != nil {
		return untouched(err)
	}
	answer, err := i.running.call(uint32(n), &i.encoder)
	if err != nil {
		return untouched(i.ended(err, fmt.Sprintf("impl %q of op %q", impl.ID, impl.Op.Name())))
	}
	i.ends = 0
	switch answer.outcome {
	case declined:
		return opregistry.Unsupported("%s", plaintext.Text(answer.text))
	case failed:
		return untouched(errors.New(plaintext.Text(answer.text)))
	}
	return i.running.copyBack(&i.encoder)
}

// untouched marks a failure that has not changed the operands. A decline needs no mark.
func untouched(err error) error {
	if errors.Is(err, opregistry.ErrUnsupported) {
		return err
	}
	return opregistry.Untouched(err)
}

// ready starts the process if it is not running.
func (i *Isolated) ready() error {
	switch wait := time.Until(i.again); {
	case i.running != nil:
		return nil
	case i.closed:
		return os.ErrClosed
	case wait > 0:
		return fmt.Errorf("its process is started again in %v: %w", wait.Round(time.Millisecond), i.last)
	}
	p, err := startProcess(i.path, i.set, (&forwarder{log: i.log, name: i.report.Name}).forward)
	if err != nil {
		return i.backOff(err)
	}
	i.running = p
	switch hello, err := p.answer(); {
	case err != nil:
		return i.ended(err, "")
	case hello.outcome != served:
		return i.ended(errors.New(plaintext.Text(hello.text)), "")
	case hello.text != i.list:
		return i.ended(fmt.Errorf("its ops differ from those that its probe reported: %s", plaintext.Text(strings.ReplaceAll(strings.TrimSpace(hello.text), "\n", ", "))), "")
	}
	return nil
}

// ended gives up a process after an error and returns why it has ended.
func (i *Isolated) ended(err error, what string) error {
	err = i.running.end(err, what)
	i.running = nil
	return i.backOff(err)
}

func (i *Isolated) backOff(err error) error {
	i.last = err
	i.again = time.Now().Add(min(firstBackoff<<min(i.ends, 16), maxBackoff))
	i.ends++
	return err
}

// Close ends the process. Calls fail from then on.
func (i *Isolated) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	if i.running != nil {
		_ = i.running.end(context.Canceled, "")
		i.running = nil
	}
	return nil
}
