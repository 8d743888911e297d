package tuning

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// formatName is the format of a File.
const formatName = "primus-tuning/3"

// File is the result of a tuning.
type File struct {
	Format  string    `json:"format"`
	Made    time.Time `json:"made"`
	Model   string    `json:"model,omitempty"` // whose steps were measured
	Machine Machine   `json:"machine"`
	Trial   *Trial    `json:"steps,omitempty"` // of whole steps; nil if none was made
	Entries []Entry   `json:"entries"`
}

// Machine is where a File was made.
type Machine struct {
	CPU     string            `json:"cpu"`
	Class   string            `json:"cpu_class"`
	Threads int               `json:"threads"`
	Primus  string            `json:"primus"`
	Sources map[string]string `json:"sources"` // of impls: their versions, or those of their libraries
}

// Entry is the choice for the calls of an op with one signature.
type Entry struct {
	Op        string             `json:"op"`
	Signature Signature          `json:"signature"`
	Call      string             `json:"call"`    // for people
	Calls     int                `json:"calls"`   // in the steps that were profiled
	Share     float64            `json:"share"`   // of the time of all calls with a choice
	Impl      string             `json:"impl_id"` // the fastest
	Over      string             `json:"over"`    // the impl that would serve the call otherwise
	Usual     string             `json:"usual"`   // the first of the policy; not Over if it declines the call
	Ratio     float64            `json:"ratio"`   // the time of Over by that of Impl: the median
	Low       float64            `json:"low"`     // of the interval of the median
	High      float64            `json:"high"`
	Samples   int                `json:"samples"`
	Clear     bool               `json:"clear"`    // more samples would not change the choice
	Times     map[string]float64 `json:"times_ms"` // the medians by impl
	// Dropped says that whole steps were not clearly faster with the choice, which is not used.
	Dropped bool `json:"dropped,omitempty"`
}

// used returns the entry as it is used.
func (e Entry) used() Entry {
	if e.Dropped {
		e.Impl, e.Ratio, e.Times = e.Over, 1, map[string]float64{e.Over: e.Times[e.Over]}
	}
	return e
}

// Signature is that of calls, a hexadecimal number in a File.
type Signature uint64

// MarshalText writes the number.
func (s Signature) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(s)), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Signature) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*s = Signature(n)
	return err
}

// New returns a File with what was measured on this machine.
func New(model string, entries []Entry, snap *opregistry.Snapshot, threads int) *File {
	return &File{Format: formatName, Made: time.Now().UTC().Truncate(time.Second), Model: model, Machine: ThisMachine(snap, threads), Entries: entries}
}

// ThisMachine describes this machine and the sources of a registry.
func ThisMachine(snap *opregistry.Snapshot, threads int) Machine {
	m := Machine{CPU: CPU(), Class: cpufeat.Class(true), Threads: threads, Primus: buildinfo.Version(), Sources: map[string]string{}}
	for _, s := range snap.Sources() {
		if len(s.Impls) > 0 {
			m.Sources[s.Name] = s.CurrentVersion()
		}
	}
	return m
}

// CPU returns the name of the processor, or the architecture where the system does not tell.
func CPU() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // absent on other systems
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// MachineError says that a File was made elsewhere.
type MachineError struct {
	File        string
	Differences []string
}

// Error names the file and what differs.
func (e *MachineError) Error() string {
	return fmt.Sprintf("%s was made on another machine or for another program, so its choices are not used: %s; make it again with primus ops tune", e.File, strings.Join(e.Differences, ", "))
}

// Check returns a *MachineError if the File does not belong to a machine. name is that of the file.
func (f *File) Check(name string, here Machine) error {
	e := &MachineError{File: name}
	differ := func(what string, want, got any) {
		if want != got {
			e.Differences = append(e.Differences, fmt.Sprintf("%s: made for %v, here %v", what, orNone(want), orNone(got)))
		}
	}
	differ("CPU", f.Machine.CPU, here.CPU)
	differ("CPU class", f.Machine.Class, here.Class)
	differ("threads", f.Machine.Threads, here.Threads)
	differ("primus", f.Machine.Primus, here.Primus)
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(f.Machine.Sources)), slices.Collect(maps.Keys(here.Sources))))))
	for _, source := range names {
		was, before := f.Machine.Sources[source]
		is, now := here.Sources[source]
		switch {
		case !before:
			e.Differences = append(e.Differences, fmt.Sprintf("source %s: new here", source))
		case !now:
			e.Differences = append(e.Differences, fmt.Sprintf("source %s: not here", source))
		case was == f.Machine.Primus && is == here.Primus: // named above
		default:
			differ("source "+source, was, is)
		}
	}
	if len(e.Differences) > 0 {
		return e
	}
	return nil
}

func orNone(value any) any {
	if value == "" {
		return "none"
	}
	return value
}

// Write writes the File in place of an earlier one.
func (f *File) Write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// maxSize bounds the size of a File.
const maxSize = 64 << 20

// Read reads a File.
func Read(path string) (*File, error) {
	text, err := durable.ReadRegular(path, maxSize)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the text of a File. name is that of the file, for errors.
func Parse(name string, text []byte) (*File, error) {
	f := &File{}
	if err := decode(text, f); err != nil {
		return nil, fmt.Errorf("%s: %w; want a file that primus ops tune wrote", name, err)
	}
	if f.Format != formatName {
		return nil, fmt.Errorf("%s: given format %q, want %q; make it again with primus ops tune", name, f.Format, formatName)
	}
	seen := map[key]bool{}
	for i, e := range f.Entries {
		k := key{e.Op, uint64(e.Signature)}
		err := e.check()
		if err == nil && seen[k] {
			err = fmt.Errorf("given op %q with signature %016x a second time, want it once", e.Op, e.Signature)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w; make the file again with primus ops tune", name, i, err)
		}
		seen[k] = true
	}
	return f, nil
}

// decode reads one JSON value without unknown fields.
func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is cut off")
	case err != nil:
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it has text after the end of the JSON object")
	}
	return nil
}

// check returns what is wrong with the entry.
func (e *Entry) check() error {
	if e.Op == "" || e.Impl == "" || e.Over == "" || e.Usual == "" || e.Calls < 1 {
		return fmt.Errorf("given op %q, impl_id %q, over %q, usual %q and %d calls, want names and at least one call", e.Op, e.Impl, e.Over, e.Usual, e.Calls)
	}
	for _, id := range []string{e.Impl, e.Over} {
		if _, measured := e.Times[id]; !measured {
			return fmt.Errorf("times_ms of op %q has no time of %s, want those of impl_id and over", e.Op, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.Times)) {
		if ms := e.Times[id]; !(ms > 0) {
			return fmt.Errorf("times_ms of op %q: given %v for %s, want a time above 0", e.Op, ms, id)
		}
	}
	return nil
}

// Tuning returns the choices for a policy. families maps ops to the family that they belong to.
// source says where the File came from.
func (f *File) Tuning(source string, families func(op string) string) *oppolicy.Tuning {
	t := &oppolicy.Tuning{Source: source, Ops: map[string]oppolicy.TunedOp{}}
	groups := map[string][]Entry{}
	for _, e := range f.Entries {
		name := cmp.Or(families(e.Op), e.Op)
		groups[name] = append(groups[name], e.used())
	}
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		entries := groups[name]
		together := families(entries[0].Op) != ""
		usual := entries[0].Usual
		best, ratio, samples := fastest(entries, usual, together)
		for _, e := range entries {
			op := t.Ops[e.Op]
			op.Impl = best
			op.Why = f.why(best, usual, ratio, samples, plural(len(entries)))
			impl := best
			if !together {
				impl = e.instead(best, usual)
			}
			if impl != best {
				over := best
				if e.Times[over] == 0 { // it does not serve the call
					over = e.Over
				}
				op.Calls = append(op.Calls, oppolicy.TunedCall{Signature: uint64(e.Signature), Impl: impl, Why: f.why(impl, over, e.Times[over]/e.Times[impl], e.Samples, "on "+e.Call)})
			}
			t.Ops[e.Op] = op
			fmt.Fprintln(digest, e.Op, best, uint64(e.Signature), impl)
		}
	}
	t.Digest = hex.EncodeToString(digest.Sum(nil))[:16]
	return t
}

// Chooses reports whether any choice differs from what would serve the call without the File.
func (f *File) Chooses() bool {
	return slices.ContainsFunc(f.Entries, func(e Entry) bool { return !e.Dropped && e.Impl != e.Over })
}

func plural(calls int) string {
	if calls == 1 {
		return "on the one shape that was measured"
	}
	return fmt.Sprintf("over the %d shapes that were measured", calls)
}

// why explains a choice.
func (f *File) why(impl, over string, ratio float64, samples int, where string) string {
	day := f.Made.Format(time.DateOnly)
	if impl == over {
		return fmt.Sprintf("tuned: %s, which no other impl beats %s, %d samples, %s", impl, where, samples, day)
	}
	return fmt.Sprintf("tuned: %s, %.2fx faster than %s %s, %d samples, %s", impl, ratio, over, where, samples, day)
}

// instead returns the impl for the calls of the entry where the op has best for the others: that of
// the entry if it is faster than best by MinRatio, or if best does not serve them.
func (e *Entry) instead(best, usual string) string {
	ms, served := e.Times[best]
	if served && ms < MinRatio*e.Times[e.Impl] || !served && best == usual && e.Impl == e.Over {
		return best // which falls back to Over, as it does without a tuning
	}
	return e.Impl
}

// fastest returns the impl with the least time over all calls, each as often as it was made. Calls
// that an impl does not serve run on the one that would serve them otherwise; if the ops stay
// together, the impl must serve all. An impl that is not clearly faster does not take the place of
// the usual one, and neither does any after a choice was dropped.
func fastest(entries []Entry, usual string, together bool) (best string, ratio float64, samples int) {
	totals := map[string]float64{usual: 0}
	for _, e := range entries {
		for id := range e.Times {
			totals[id] = 0
		}
	}
	for id := range totals {
		for _, e := range entries {
			ms, served := e.Times[id]
			if !served && id != usual && (together || e.Dropped) {
				delete(totals, id)
				break
			}
			if !served {
				ms = e.Times[e.Over]
			}
			totals[id] += ms * float64(e.Calls)
		}
	}
	best = usual
	for _, id := range slices.Sorted(maps.Keys(totals)) {
		if totals[id] < totals[best] && totals[usual] >= MinRatio*totals[id] {
			best = id
		}
	}
	for _, e := range entries {
		samples += e.Samples
	}
	return best, totals[usual] / totals[best], samples
}
