package commandtest

import (
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/loadertest"
)

// BuildPlugin builds the acme.c of package plugins with these macros defined and returns the
// library.
func BuildPlugin(t *testing.T, macros ...string) string {
	t.Helper()
	flags := []string{"-I../../../../../vendors/abi"}
	for _, m := range macros {
		flags = append(flags, "-D"+m)
	}
	return loadertest.Library(t, "libacme_ops.so", "../plugins/testdata/acme.c", flags...)
}

// RunChild runs a command line in a process that may load plugins; others of vendors are left out.
func RunChild(t *testing.T, env []string, args ...string) Outcome {
	t.Helper()
	cmd := Child(t.Context(), append([]string{"PRIMUS_OPENBLAS=" + Absent, "PRIMUS_ONEDNN=" + Absent}, env...), args...)
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	code := ExitCode(t, cmd.Run())
	return Outcome{code, out.String(), stderr.String()}
}
