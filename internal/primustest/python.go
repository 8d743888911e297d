package primustest

import (
	"os/exec"
	"strings"
	"testing"
)

// hasModules exits with 0 if all modules that its arguments name are installed. It imports none of
// them: PyTorch takes seconds to import.
const hasModules = "import importlib.util, sys; sys.exit(None in map(importlib.util.find_spec, sys.argv[1:]))"

// Python returns a Python that has some modules, and skips the test if there is none.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, append([]string{"-c", hasModules}, modules...)...).Run() == nil {
			return python
		}
	}
	t.Skipf("no python3 with %s; scripts/install-test-deps.sh installs them", strings.Join(modules, ", "))
	return ""
}
