package recordtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// deviations lists the deliberate differences from the recorded ancestor: fixture file, case (its
// name, document or tokens), the result here, and the reason. want is a part of the error, or empty
// if the result is another value.
var deviations = []struct{ file, id, want, why string }{
	{"yaml_docs.jsonl", "1: x\ntrue: y\nnull: z\n1.5: w\n", "want a string as key",
		"no configuration can use other keys, the ancestor fails one step later"},
	{"overrides_modern.jsonl", "bare ok=1", `override 1 "bare"`, "a dropped token is a lost setting: usage error instead of a warning"},
	{"overrides_modern.jsonl", "a=1E5", "", "a number with an exponent is a float with and without a point"},
	{"merge_cases.jsonl", "null_string_nested_no_overrides", "",
		`the string "null" is null at any depth outside lists, not depending on which merges happened`},
	{"bad_inputs.jsonl", "cli_null_string_kept", "", "null on the command line is null, as in files"},
}

func deviation(file, id string) (want string, found bool) {
	for _, d := range deviations {
		if d.file == file && d.id == id {
			return d.want, true
		}
	}
	return "", false
}

// Deviates checks the result of a case with a deliberate difference, and reports whether there is
// one.
func Deviates(t *testing.T, file, id string, err error) bool {
	t.Helper()
	want, found := deviation(file, id)
	if found && want != "" {
		require.ErrorContains(t, err, want)
	} else if found {
		require.NoError(t, err)
	}
	return found
}
