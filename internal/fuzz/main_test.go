package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module makes a module with two fuzz tests, one of which finds a fault.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/fuzzed\n\ngo 1.26\n",
		"a/a_test.go": `package a

import "testing"

// Floor: 7 executions a second.
//
// Oracle: round trip.
func FuzzGood(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }
`,
		"b/b_test.go": `package b

import "testing"

func FuzzBad(f *testing.F) {
	f.Add("x")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 2 {
			t.Error("too long")
		}
	})
}
`,
		"b/testdata/c_test.go": "package c\n\nfunc FuzzHidden(f *testing.F) {}\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

func TestTargets(t *testing.T) {
	all, err := targets(module(t), regexp.MustCompile(""))
	require.NoError(t, err)
	assert.Equal(t, []target{{"a", "FuzzGood", 7, "round trip"}, {"b", "FuzzBad", floor, ""}}, all)
	some, err := targets(module(t), regexp.MustCompile("^b"))
	require.NoError(t, err)
	assert.Equal(t, []target{{"b", "FuzzBad", floor, ""}}, some)
}

// TestTable compares the table of the docs with the fuzz tests of the module.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/reliability.md")
	require.NoError(t, err)
	all, err := targets("../..", regexp.MustCompile(""))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, target := range all {
		assert.Regexp(t, fmt.Sprintf(`(?m)^\| %s \| .* \| %.0f \| .* \| ok \|$`, regexp.QuoteMeta(target.String()), target.floor), string(page),
			"make fuzz FUZZTIME=30s ARGS='-o md -only %v' prints the row", target)
	}
}

// TestOracles compares the list of the docs with what the fuzz tests say that they compare with.
func TestOracles(t *testing.T) {
	all, err := targets("../..", regexp.MustCompile(""))
	require.NoError(t, err)
	var list strings.Builder
	for _, oracle := range []string{"round trip", "second decoder"} {
		var names []string
		for _, target := range all {
			if target.oracle == oracle {
				names = append(names, "`"+target.String()+"`")
			}
		}
		fmt.Fprintf(&list, "- %s: %s\n", oracle, strings.Join(names, ", "))
	}
	goldentest.Section(t, "../../docs/explanation/reliability.md", "go test ./internal/fuzz -run TestOracles -update", list.String())
}

func TestRun(t *testing.T) {
	primustest.Long(t, "it builds tests for fuzzing")
	t.Chdir(module(t))
	var out, progress strings.Builder
	err := run(t.Context(), []string{"-time", "1s"}, &out, &progress)
	require.EqualError(t, err, "1 of 2 tests have a fault", out.String())
	assert.Equal(t, "1/2 a.FuzzGood\n2/2 b.FuzzBad\n", progress.String())
	assert.Regexp(t, `(?m)^a\.FuzzGood +[1-9]\d* +[1-9]\d* +7 +\d+ +ok$`, out.String())
	assert.Regexp(t, `(?m)^b\.FuzzBad .* fault$`, out.String())
	assert.Contains(t, out.String(), "too long")
}

func TestWrongFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`given argument "all", want flags only`:                                          {"all"},
		"-time: given 1ms, want at least 1s":                                             {"-time", "1ms"},
		`-o: given "xml", want text, json or md`:                                         {"-o", "xml"},
		`-only: given "^nothing$", want a regular expression that some DIR.NAME matches`: {"-only", "^nothing$"},
		"-only: error parsing regexp: missing closing ): `(`":                            {"-only", "("},
	} {
		require.EqualError(t, run(t.Context(), args, &strings.Builder{}, &strings.Builder{}), want)
	}
}

func TestSlowTarget(t *testing.T) {
	text := "fuzz: elapsed: 0s, gathering baseline coverage: 0/1 completed\nfuzz: elapsed: 3s, execs: 30 (10/sec), new interesting: 2 (total: 3)\nfuzz: elapsed: 10s, execs: 50 (2/sec), new interesting: 4 (total: 5)\nPASS\n"
	r := read(target{"a", "FuzzSlow", 100, ""}, []byte(text))
	assert.Equal(t, result{Target: "a.FuzzSlow", Execs: 50, Rate: 5, Floor: 100, New: 4}, r)
}

func TestTail(t *testing.T) {
	assert.Equal(t, "one\ntwo", tail([]byte("\none\ntwo\n")))
	text := tail([]byte(strings.Repeat("0123456789\n", 1000) + "SIGQUIT: quit\n"))
	assert.LessOrEqual(t, len(text), most)
	assert.True(t, strings.HasPrefix(text, "0123456789\n0"), text)
	assert.True(t, strings.HasSuffix(text, "\nSIGQUIT: quit"), text)
}

func TestAtLimit(t *testing.T) {
	assert.Regexp(t, atLimit, "fuzz: elapsed: 30s, execs: 3 (1/sec)\n--- FAIL: FuzzReply (30.08s)\n    context deadline exceeded\nFAIL\nexit status 1\n")
	assert.NotRegexp(t, atLimit, "--- FAIL: FuzzReply (30.08s)\n    --- FAIL: FuzzReply (0.00s)\n        context deadline exceeded\n    \n    Failing input written to testdata\nFAIL\n")
}
