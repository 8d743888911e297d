package dispatch

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/isa"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Environment holds the variables of dispatch by name: those that begin with TE_FL_ or TEFL_, known
// or not, and those of CUDA.
type Environment map[string]string

// environmentNow returns the variables of dispatch as they are now: the environment is read once,
// at the start.
func environmentNow() Environment {
	e := Environment{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TE_FL_") || strings.HasPrefix(name, "TEFL_") || slices.Contains(cudaVariables, name) {
			e[name] = value
		}
	}
	return e
}

// lookup returns the value of a variable and whether it is set.
func (e Environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Variables returns the names of the variables of dispatch that are known.
func Variables() []string {
	return slices.Concat(oppolicy.EnvVariables(), []string{envPluginModules, isa.Env}, cudaVariables)
}

// unknown returns a warning for each variable that is not known, with the one that was probably
// meant.
func (e Environment) unknown() []string {
	known := Variables()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e)) {
		if slices.Contains(known, name) {
			continue
		}
		hint := "want one of " + strings.Join(known, ", ")
		if nearest, ok := suggest.Nearest(name, known); ok {
			hint = fmt.Sprintf("did you mean %s?", nearest)
		}
		all = append(all, fmt.Sprintf("environment %s has no effect, there is no such variable; %s", name, hint))
	}
	return all
}

// Known returns the environment without unknown variables.
func (e Environment) Known() Environment {
	known := Variables()
	kept := maps.Clone(e)
	maps.DeleteFunc(kept, func(name, _ string) bool { return !slices.Contains(known, name) })
	return kept
}

// CheckVariables warns of unknown variables. Under a strict configuration they are an error.
func (s *Sources) CheckVariables(log *slog.Logger) error {
	unknown := s.Environment().unknown()
	if s.Strict && len(unknown) > 0 {
		return cli.UsageError{Err: fmt.Errorf("--strict-config: %s", strings.Join(unknown, "\n--strict-config: "))}
	}
	for _, text := range unknown {
		log.Warn(text)
	}
	return nil
}
