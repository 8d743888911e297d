package opstest

import (
	"testing"

	"github.com/primus-fl/primus/tensor/tensortest"
)

// T is the part of a test that a case needs.
type T interface {
	tensortest.TB
	Logf(format string, args ...any)
	// Skipf ends the case as one that the impl declined.
	Skipf(format string, args ...any)
	Failed() bool
	// Run runs a part of the test under its own name.
	Run(name string, f func(T)) bool
}

// goTest is the T of a Go test.
type goTest struct{ *testing.T }

func (t goTest) Run(name string, f func(T)) bool {
	t.Helper()
	return t.T.Run(name, func(sub *testing.T) { f(goTest{sub}) })
}

// record is the T of Verify. It keeps the failures.
type record struct {
	name     string
	parent   *record
	failures []Failure // of the root
	failed   bool
}

// ended is what Fatalf and Skipf panic with.
type ended struct{ r *record }

func (r *record) root() *record {
	for r.parent != nil {
		r = r.parent
	}
	return r
}

func (r *record) Helper()             {}
func (r *record) Logf(string, ...any) {}
func (r *record) Failed() bool        { return r.failed }

func (r *record) Errorf(format string, args ...any) {
	for at := r; at != nil; at = at.parent {
		at.failed = true
	}
	root := r.root()
	root.failures = append(root.failures, newFailure(r.name, format, args))
}

func (r *record) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(ended{r})
}

func (r *record) Skipf(string, ...any) { panic(ended{r}) }

func (r *record) Run(name string, f func(T)) bool {
	sub := &record{name: name, parent: r}
	if r.name != "" {
		sub.name = r.name + "/" + name
	}
	defer func() {
		if cause := recover(); cause != nil && cause != any(ended{sub}) {
			panic(cause)
		}
	}()
	f(sub)
	return !sub.failed
}

var (
	_ T = goTest{}
	_ T = (*record)(nil)
)
