package patch

import (
	"fmt"
	"log/slog"
	"math/big"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
)

// Context is the argument of conditions and handlers.
type Context struct {
	Backend        string
	Phase          Phase
	BackendVersion string // empty when it is unknown
	PrimusVersion  string
	ModelName      string
	ModuleName     string
	Platform       string

	Params  *document.Map         // parameters of the module; from phase setup on also the arguments of the backend
	Args    *backend.Args         // arguments of the backend, nil if there are none
	Environ *backend.Environ      // nil if the environment cannot be changed
	Points  *Points               // extension points of the trainer, nil if there is none yet
	Train   *backend.TrainContext // of the run, nil outside of one
	Log     *slog.Logger

	patch   string // the current one
	effects int    // number of changes that Changed has recorded
}

// Value returns the parameter at a dotted path, and whether it is present and not null.
func (c *Context) Value(path string) (document.Value, bool) {
	v, ok := c.Params.Get(path)
	return v, ok && !v.IsNull()
}

// IsSet reports whether the parameter at a dotted path is present and not null, false, zero or
// empty.
func (c *Context) IsSet(path string) bool {
	v, ok := c.Value(path)
	if !ok {
		return false
	}
	switch d := v.Any().(type) {
	case bool:
		return d
	case string:
		return d != ""
	case int64:
		return d != 0
	case *big.Int:
		return true
	case float64:
		return d != 0
	case []any:
		return len(d) > 0
	case map[string]any:
		return len(d) > 0
	}
	return true
}

// Param returns the parameter at a dotted path, or def when it is absent or null. A value of
// another type is an error that says where it was written. T is bool, int64, float64 or string; an
// int is accepted as a float64.
func Param[T bool | int64 | float64 | string](c *Context, path string, def T) (T, error) {
	v, ok := c.Value(path)
	if !ok {
		return def, nil
	}
	var result T
	expected := ""
	switch into := any(&result).(type) {
	case *bool:
		expected = "true or false"
		*into, ok = v.Bool()
	case *int64:
		expected = "a whole number"
		*into, ok = v.Int64()
	case *float64:
		expected = "a number"
		*into, ok = v.Float64()
	case *string:
		expected = "a string"
		*into, ok = v.Str()
	}
	if !ok {
		return def, document.WrongType(v, path, expected, "")
	}
	return result, nil
}

// SetArg sets an argument of the backend, at a dotted path.
func (c *Context) SetArg(path string, value any) error {
	if c.Args == nil {
		return fmt.Errorf("argument %s cannot be set in phase %s: there are no arguments", path, c.Phase)
	}
	return c.Args.Set(path, value, "patch "+c.patch)
}

// Setenv sets an environment variable for the run.
func (c *Context) Setenv(name, value string) error {
	if c.Environ == nil {
		return fmt.Errorf("variable %s cannot be set in phase %s: the environment is fixed", name, c.Phase)
	}
	return c.Environ.Set(name, value, "patch "+c.patch)
}

// Changed records that the handler has changed something that the Context does not see. Otherwise
// the patch would be reported as one that changed nothing.
func (c *Context) Changed() { c.effects++ }

// mark is a state to which rewind returns.
type mark struct {
	args    backend.ArgsMark
	env     int
	points  int
	effects int
}

func (c *Context) mark() mark {
	m := mark{effects: c.effects}
	if c.Args != nil {
		m.args = c.Args.Mark()
	}
	if c.Environ != nil {
		m.env = len(c.Environ.Changes())
	}
	if c.Points != nil {
		m.points = c.Points.revision
	}
	return m
}

// changedSince reports whether anything was changed since a mark.
func (c *Context) changedSince(m mark) bool {
	now := c.mark()
	return now.effects != m.effects || now.args.Changes() != m.args.Changes() || now.env != m.env || now.points != m.points
}

// rewind undoes what the current patch has changed since a mark.
func (c *Context) rewind(m mark) error {
	if c.Args != nil {
		c.Args.Rewind(m.args)
	}
	if c.Points != nil {
		c.Points.Undo(c.patch)
	}
	if c.Environ != nil {
		return c.Environ.Rewind(m.env)
	}
	return nil
}
