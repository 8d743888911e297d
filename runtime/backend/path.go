package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/runtime/config"
)

// EnvBackendPath is the variable for the source tree of a framework. EnvThirdParty is the variable
// for the directory that holds the trees of all frameworks.
const (
	EnvBackendPath = "BACKEND_PATH"
	EnvThirdParty  = "PRIMUS_THIRDPARTY_DIR"
)

// Paths is the location of the source tree of a framework.
type Paths struct {
	Dir        string   // absolute; empty when the framework is compiled in
	PythonPath []string // the directories to put first in Python's module search path, in order
	Source     string   // the flag, variable or default that named the tree
}

// FindTree looks for the source tree of the framework of tc, the first of
//
//	given, which is --backend-path        it must exist
//	$BACKEND_PATH                         it must exist
//	third_party/<dir>                     of the checkout of Primus that the experiment lies in
//	third_party/<dir>                     below the working directory
//	$PRIMUS_THIRDPARTY_DIR/<dir>          or ~/.cache/Primus/third_party/<dir>
//
// and returns it with the sub-directories that Python searches first, the last of them before the
// others.
func FindTree(tc *TrainContext, dir, given string, sub ...string) (Paths, error) {
	env := tc.Environ
	for _, named := range []struct{ source, path string }{
		{"--backend-path", given}, {EnvBackendPath, env.Get(EnvBackendPath, "")},
	} {
		if named.path == "" {
			continue
		}
		return TreeAt(tc.Framework, dir, named.path, named.source, sub...)
	}
	thirdParty := env.Get(EnvThirdParty, filepath.Join(env.Get("HOME", ""), ".cache", "Primus", "third_party"))
	var tried []string
	for _, place := range []struct{ source, path string }{
		{"the checkout of the experiment", tc.inCheckout("third_party", dir)},
		{"third_party", filepath.Join("third_party", dir)}, {EnvThirdParty, filepath.Join(thirdParty, dir)},
	} {
		if place.path == "" {
			continue
		}
		entries, err := os.ReadDir(place.path)
		switch {
		case err != nil:
			tried = append(tried, place.path)
		case len(entries) == 0:
			tried = append(tried, place.path+", which is empty (git submodule update --init)")
		default:
			return newPaths(place.path, place.source, sub)
		}
	}
	return Paths{}, fmt.Errorf("framework %s: no source tree in %s: give --backend-path, or set %s or %s",
		tc.Framework, strings.Join(tried, " or "), EnvBackendPath, EnvThirdParty)
}

// TreeAt returns the source tree of a framework that source, such as a variable, says is at path.
// It must exist.
func TreeAt(framework, dir, path, source string, sub ...string) (Paths, error) {
	if !isDir(path) {
		return Paths{}, fmt.Errorf("framework %s: %s: %q is not a directory, want the source tree of %s", framework, source, path, dir)
	}
	return newPaths(path, source, sub)
}

// Checkout returns the checkout of Primus that the experiment lies in, "" for none.
func (tc *TrainContext) Checkout() string {
	if tc.Experiment == nil {
		return ""
	}
	return config.Checkout(tc.Experiment.File)
}

// inCheckout returns a path below the checkout, "" when there is none.
func (tc *TrainContext) inCheckout(below ...string) string {
	checkout := tc.Checkout()
	if checkout == "" {
		return ""
	}
	return filepath.Join(append([]string{checkout}, below...)...)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func newPaths(dir, source string, sub []string) (Paths, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Paths{}, fmt.Errorf("source tree %q: %w", dir, err)
	}
	p := Paths{Dir: absolute, PythonPath: []string{absolute}, Source: source}
	for _, below := range sub {
		p.PythonPath = append([]string{filepath.Join(absolute, filepath.FromSlash(below))}, p.PythonPath...)
	}
	return p, nil
}
