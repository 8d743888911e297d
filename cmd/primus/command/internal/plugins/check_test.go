package plugins_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// acme compiles the example in C, the ops with a fault unless fault is "".
func acme(t *testing.T, fault string) string {
	t.Helper()
	source, flags := "acme.c", []string{"-O2", "-I../../../../../vendors/abi", "-lm"}
	if fault != "" {
		source, flags = "faults.c", append(flags, "-DACME_"+strings.ToUpper(fault))
	}
	return loadertest.Library(t, "libacme.so", "../../../../../examples/outtree_c/"+source, flags...)
}

// checked is what a test reads of a report.
type checked struct {
	Name, Version, ABI, SHA256 string
	Ops                        []struct {
		Op          string
		Impl        string `json:"impl_id"`
		Device      string
		Flags       []string
		Conformance []struct {
			DType            string
			Served, Declined int
			Failures         []struct{ Case, Reason string }
		}
		Together struct{ Calls int }
		Leaks    struct {
			BytesPerCall int `json:"bytes_per_call"`
		}
		Speed []struct {
			Case         string
			Bytes        int
			Impl         float64 `json:"impl_us"`
			Baseline     string
			BaselineTime float64 `json:"baseline_us"`
		}
		Sizes []struct {
			Model, Shape, DType, Result, Reason string
			Time                                float64 `json:"time_us"`
			Baseline                            string
			BaselineTime                        float64 `json:"baseline_us"`
			GBPerS                              float64 `json:"gb_per_s"`
			Bound                               string
		}
	}
	Faults, Notes []string
	Passed        bool
}

// check runs `primus plugins check`, whose children play the program, too.
func check(t *testing.T, file string, args ...string) (checked, commandtest.Outcome) {
	t.Helper()
	t.Setenv(commandtest.RoleEnv, "primus")
	got := commandtest.Run(t, append([]string{"plugins", "check", file, "-o", "json"}, args...)...)
	var report checked
	require.NoError(t, json.Unmarshal([]byte(got.Out), &report), got.Stderr)
	return report, got
}

// A function for TVM FFI is probed and checked as an op of a plugin is.
func TestPluginsCheckMapping(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	build := func(flags ...string) string {
		path := loadertest.Library(t, "libadd.so", "../../../../../internal/plugin/testdata/tvm.c", flags...)
		mapping := `{"vendor": "acme", "functions": [{"function": "add", "op": "residual_add", "args": ["a", "b", "output"], "dtypes": ["f32"], "thread_safe": true}]}`
		require.NoError(t, os.WriteFile(path+".tvm_ffi.json", []byte(mapping), 0o600))
		return path
	}
	report, got := check(t, build())
	assert.Zero(t, got.Code, got.Out)
	assert.True(t, report.Passed)
	assert.Equal(t, "acme tvm_ffi", report.Name+" "+report.ABI)
	require.Len(t, report.Ops, 1)
	assert.Positive(t, report.Ops[0].Conformance[0].Served)
	assert.Positive(t, report.Ops[0].Together.Calls)

	stray := commandtest.RunChild(t, nil, "plugins", "list", "--plugin-modules", build("-DSTRAY"))
	assert.Contains(t, stray.Out, "rejected")
	assert.Contains(t, stray.Out, `impl "vendor.acme" of op "residual_add"`)
}

func TestPluginsCheckPasses(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	report, got := check(t, acme(t, ""))
	assert.Zero(t, got.Code, got.Out)
	assert.True(t, report.Passed)
	assert.Empty(t, report.Faults)
	assert.Empty(t, report.Notes)
	assert.Equal(t, "acme_ops 1.0.0 1.2", report.Name+" "+report.Version+" "+report.ABI)
	assert.Len(t, report.SHA256, 64)
	require.Len(t, report.Ops, 2)
	for i, op := range []string{"rmsnorm_fwd", "rmsnorm_bwd"} {
		c := report.Ops[i]
		assert.Equal(t, op, c.Op)
		assert.Equal(t, "vendor.acme", c.Impl)
		assert.Equal(t, []string{"thread_safe", "deterministic"}, c.Flags)
		require.Len(t, c.Conformance, 4)
		for k, served := range []bool{true, true, false, false} {
			assert.Equal(t, served, c.Conformance[k].Served > 0, c.Conformance[k].DType)
			assert.Positive(t, c.Conformance[k].Declined)
		}
		assert.Positive(t, c.Together.Calls)
		assert.Less(t, c.Leaks.BytesPerCall, 16)
		require.Len(t, c.Speed, 2, "f32 and bf16")
		assert.Regexp(t, `^f32/\d+x512$`, c.Speed[0].Case)
		assert.Greater(t, c.Speed[0].Bytes, 256*512*4*2)
		assert.Positive(t, c.Speed[0].Impl)
		assert.Equal(t, "default.flagos", c.Speed[0].Baseline)
		assert.Positive(t, c.Speed[0].BaselineTime)
		require.Len(t, c.Sizes, 6, "three models in f32 and bf16")
		for _, s := range c.Sizes {
			assert.Equal(t, "right", s.Result, s.Reason)
			assert.Contains(t, "1B 8B 70B", s.Model)
			assert.Equal(t, "default.flagos", s.Baseline)
			assert.Equal(t, "memory", s.Bound)
			assert.Positive(t, s.Time)
			assert.Positive(t, s.BaselineTime)
			assert.Positive(t, s.GBPerS)
		}
		assert.Equal(t, "512x8192", c.Sizes[2].Shape, "a model of 70B parameters has rows of 8,192")
	}
}

// A kernel that is wrong at the sizes of models is refused, and the reports on it and on a right
// one make a page that a browser shows.
func TestPluginsReport(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	dir := t.TempDir()
	publish := func(name string, macros ...string) string {
		_, got := check(t, commandtest.BuildPlugin(t, append(macros, `NAME="`+name+`"`)...))
		file := filepath.Join(dir, name+".json")
		require.NoError(t, os.WriteFile(file, []byte(got.Out), 0o600))
		return file
	}
	right, wrong := publish("acme_right"), publish("acme_short", "SHORT")
	text, err := os.ReadFile(wrong)
	require.NoError(t, err)
	var report checked
	require.NoError(t, json.Unmarshal(text, &report))
	assert.False(t, report.Passed)
	assert.Contains(t, strings.Join(report.Faults, "\n"), "residual_add, vendor.acme: ")

	page := filepath.Join(dir, "page.html")
	got := commandtest.Run(t, "plugins", "report", right, wrong, "--output", page)
	require.Zero(t, got.Code, got.Stderr)
	b := commandtest.NewBrowser(t)
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+page))
	b.Sees(`document.querySelectorAll("table")[0].rows[1].innerText.startsWith("residual_add")`)
	b.Sees(`document.querySelectorAll("table")[0].rows[1].cells[1].className === "right"`)
	b.Sees(`document.querySelectorAll("table")[0].rows[1].cells[2].className === "wrong"`)
	b.Sees(`performance.getEntriesByType("resource").length === 0`)
	b.WellBehaved()
	b.Picture("plugins-report", 1280, 900)
	b.Picture("plugins-report-390", 390, 800)
}

func TestPluginsReportBadFiles(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.json")
	require.NoError(t, os.WriteFile(other, []byte(`{"a": 1}`), 0o600))
	page := filepath.Join(dir, "page.html")
	got := commandtest.Run(t, "plugins", "report", other, filepath.Join(dir, "absent.json"), "--output", page)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "report "+other+": given JSON without the checksum of a library and its ops; want what `primus plugins check FILE -o json` writes")
	assert.Contains(t, got.Stderr, "absent.json: no such file or directory")
	assert.NoFileExists(t, page)
	assert.Equal(t, 2, commandtest.Run(t, "plugins", "report").Code)
}

func TestPluginsCheckFindsFaults(t *testing.T) {
	primustest.Long(t, "it builds and checks plugins")
	tests := []struct {
		fault, failure, want string
		args                 []string
	}{
		{fault: "wrong", failure: `not within`},
		{fault: "guard", failure: `guard elements were written to`},
		{fault: "race", failure: `differs alone and beside other calls`},
		{fault: "leak", want: `rmsnorm_fwd, vendor\.acme: \d+ calls of case f32/.+ lost memory, 2\d\d bytes per call`},
		{fault: "crash", want: `rmsnorm_fwd, vendor\.acme: it crashed with SIGSEGV \(segmentation violation\) in case f32/\[1 1\]`},
		{fault: "exit", want: `it ended its process with status 7 in case f32/\[1 1\]`},
		{fault: "hang", want: `it did not come back within 8s in case f32/`, args: []string{"--timeout", "8s"}},
		{fault: "rounds", want: `run of impl "vendor\.acme" of op "rmsnorm_fwd" changed the floating-point environment.+rounding towards zero`},
		{fault: "chdir", want: `rmsnorm_fwd, vendor\.acme: it changed the working directory from /.+ to /`},
		{fault: "signals", want: `it changed the signals that are ignored from [0-9a-f]+ to [0-9a-f]+`},
		{fault: "handles", want: `it changed the handlers of signals: SIGTERM`},
		{fault: "prints", want: `rmsnorm_fwd, vendor\.acme: it prints to the standard output, where commands write their results; the first line is "acme says hello"`},
		{fault: "setenv", want: `it changed the environment: ACME_SECRET`},
		{fault: "locale", want: `it changed the locale from C to C\.UTF-8`},
		{fault: "reads", want: `it crashed with SIGSEGV \(segmentation violation\) in case f32/beside_guarded_pages/`},
		{fault: "keeps", want: `as \w+ models have it: in the second call at the same addresses, with an element that is another: `},
		{fault: "spies", failure: `not within`},
		{fault: "old_abi", want: `does not speak ABI 1\.2`},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			report, got := check(t, acme(t, tt.fault), append([]string{"--op", "*_fwd"}, tt.args...)...)
			assert.Equal(t, 1, got.Code)
			assert.False(t, report.Passed)
			if tt.failure == "" {
				assert.Regexp(t, tt.want, strings.Join(report.Faults, "\n"))
				return
			}
			require.Len(t, report.Ops, 1)
			var reasons []string
			for _, c := range report.Ops[0].Conformance {
				for _, f := range c.Failures {
					reasons = append(reasons, f.Reason)
				}
			}
			assert.Contains(t, strings.Join(reasons, "\n"), tt.failure)
		})
	}
}

func TestPluginsCheckNotesWhatIsPrinted(t *testing.T) {
	primustest.Long(t, "it builds and checks a plugin")
	report, got := check(t, acme(t, "warns"), "--op", "*_fwd")
	assert.Zero(t, got.Code, got)
	assert.Regexp(t, `rmsnorm_fwd, vendor\.acme printed \d+ lines to the standard error of the process, the first "acme says hello"`, strings.Join(report.Notes, "\n"))
}

func TestPluginsCheckTellsWhatIsNoPlugin(t *testing.T) {
	report, got := check(t, "check_test.go")
	assert.Equal(t, 1, got.Code)
	assert.Equal(t, []string{`plugin check_test.go: it is not an ELF shared library: it begins with "package plugins_"`}, report.Faults)
	assert.Len(t, report.SHA256, 64)

	library, err := os.ReadFile(acme(t, ""))
	require.NoError(t, err)
	open := filepath.Join(t.TempDir(), "libacme.so")
	require.NoError(t, os.WriteFile(open, library[:len(library)/2], 0o600))
	report, _ = check(t, open)
	require.Len(t, report.Faults, 1)
	assert.Contains(t, report.Faults[0], "it is truncated")
	require.NoError(t, os.WriteFile(open, library, 0o600))
	require.NoError(t, os.Chmod(open, 0o666))
	report, got = check(t, open, "--op", "none")
	assert.Equal(t, 1, got.Code, "nothing was checked")
	require.Len(t, report.Notes, 1)
	assert.Contains(t, report.Notes[0], "it would not be loaded from here: plugin "+open+": it is writable by its group or others")

	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"/nonexistent/libacme.so"}, 1, "no such file"},
		{[]string{"."}, 1, "plugin .: it is a directory, want a shared library"},
		{nil, 2, "want the file of one plugin"},
		{[]string{"a.so", "b.so"}, 2, "want the file of one plugin"},
		{[]string{"a.so", "--op", "["}, 2, "--op"},
		{[]string{"a.so", "--timeout", "0s"}, 2, "more than 0"},
		{[]string{"a.so", "--failures", "-1"}, 2, "from 0"},
	} {
		got := commandtest.Run(t, append([]string{"plugins", "check"}, tt.args...)...)
		assert.Equal(t, tt.code, got.Code)
		assert.Contains(t, commandtest.OnlyError(t, got), tt.want)
	}
}

func TestPluginsCheckPrintsAReport(t *testing.T) {
	t.Setenv(commandtest.RoleEnv, "primus")
	got := commandtest.Run(t, "plugins", "check", acme(t, "wrong"), "--op", "rmsnorm_fwd", "--failures", "1")
	assert.Equal(t, 1, got.Code)
	for _, want := range []string{
		"plugin   acme_ops 1.0.0, ABI 1.2\n", "sha256   ", "rmsnorm_fwd, vendor.acme: case f32/[1 1]", "more failures; --failures 0 shows all",
		"\nresult: failed\n",
	} {
		assert.Contains(t, got.Out, want)
	}
}
