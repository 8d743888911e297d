package patch

import (
	"encoding"
	"errors"
	"fmt"
	"path"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// ErrMissing is wrapped by handlers that lack something they need, such as a library.
var ErrMissing = errors.New("missing dependency")

// Phase is a point of a run at which patches are applied.
type Phase string

// The phases in the order of a run; Convert belongs to the conversion of checkpoints.
const (
	BuildArgs   Phase = "build_args"   // the arguments exist, the trainer does not
	Setup       Phase = "setup"        // the trainer exists and has not run yet
	BeforeTrain Phase = "before_train" // the trainer is initialised
	AfterTrain  Phase = "after_train"  // training has ended without error
	Convert     Phase = "convert"
)

// Phases returns all phases in order.
func Phases() []Phase { return []Phase{BuildArgs, Setup, BeforeTrain, AfterTrain, Convert} }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Phase) UnmarshalText(text []byte) error {
	if phase := Phase(text); slices.Contains(Phases(), phase) {
		*p = phase
		return nil
	}
	return unknownPhase(Phase(text))
}

func unknownPhase(p Phase) error {
	var names []string
	for _, phase := range Phases() {
		names = append(names, string(phase))
	}
	hint := suggest.Hint(string(p), names)
	return fmt.Errorf("unknown phase %q, want one of %s%s", p, strings.Join(names, ", "), hint)
}

// Style is what kind of change a patch makes.
type Style string

// The styles.
const (
	Replacement Style = "replacement" // of an extension point
	Wrapping    Style = "wrapping"    // of an extension point
	ArgRewrite  Style = "arg_rewrite" // of the backend's arguments
	Environment Style = "environment" // variables
	Lifecycle   Style = "lifecycle"   // the patch acts without changing the run
)

var styles = []Style{Replacement, Wrapping, ArgRewrite, Environment, Lifecycle}

// DefaultPriority is the priority of patches that do not say one.
const DefaultPriority = 50

// Priority orders the patches of a phase, smaller first. The zero Priority is DefaultPriority.
type Priority struct{ offset int }

// At returns a number as a Priority.
func At(n int) Priority { return Priority{n - DefaultPriority} }

// Int returns the priority as a number.
func (p Priority) Int() int { return p.offset + DefaultPriority }

// MarshalText implements encoding.TextMarshaler.
func (p Priority) MarshalText() ([]byte, error) { return fmt.Append(nil, p.Int()), nil }

// Condition decides, next to backend, phase and versions, whether a patch runs. The zero Condition
// always holds.
type Condition struct {
	Text  string                       // for readers: "z_loss_coeff > 0"
	Holds func(*Context) (bool, error) // must not change anything
}

// When returns the condition that the parameter at a dotted path is set: not absent, null, false,
// zero or empty.
func When(key string) Condition {
	return Condition{Text: key + " is set", Holds: func(c *Context) (bool, error) { return c.IsSet(key), nil }}
}

// Patch is a change of a backend in a phase. Only ID and Apply are required.
type Patch struct {
	ID          string
	Description string
	Backend     string // the framework; empty means any
	Phase       Phase  // empty means any
	Condition   Condition
	Priority    Priority

	// BackendVersions and PrimusVersions are patterns as MatchVersion reads them, one of which must
	// fit.
	BackendVersions, PrimusVersions []string

	Tags    []string
	Style   Style
	Symbols []string // what it changes: extension points, arg:NAME, env:NAME
	Keys    []string // parameters that switch the patch or tune it

	// Apply is the handler. It makes changes through the Context only, so that they can be shown and
	// undone. In phase build_args it does nothing else, because a dry run calls it as well.
	Apply func(*Context) error
}

// Location returns where the handler is written, as package path, file and line.
func (p *Patch) Location() string {
	f := goruntime.FuncForPC(reflect.ValueOf(p.Apply).Pointer())
	file, line := f.FileLine(f.Entry())
	dir, name := path.Split(f.Name())
	name, _, _ = strings.Cut(name, ".")
	dir = strings.TrimPrefix(dir+name, modulePath)
	return fmt.Sprintf("%s/%s:%d", dir, path.Base(strings.ReplaceAll(file, `\`, "/")), line)
}

// modulePath is cut from locations.
const modulePath = "github.com/primus-fl/primus/"

// check returns what makes a patch unusable wherever it runs.
func (p *Patch) check() error {
	switch {
	case p.ID == "":
		return errors.New("a patch has no id")
	case strings.ContainsAny(p.ID, ", \t\n"):
		return fmt.Errorf("patch %q: an id cannot contain commas and spaces, which separate ids in %s", p.ID, EnvFilter)
	case p.Apply == nil:
		return fmt.Errorf("patch %q: it has no handler", p.ID)
	}
	for _, pattern := range slices.Concat(p.BackendVersions, p.PrimusVersions) {
		if _, err := MatchVersion("0", pattern); err != nil {
			return fmt.Errorf("patch %q: %w", p.ID, err)
		}
	}
	return nil
}

var (
	_ encoding.TextUnmarshaler = (*Phase)(nil)
	_ encoding.TextMarshaler   = Priority{}
)
