package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/internal/loadertest"
	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/tensor"
)

// roleEnv makes a child process of the test binary serve a plugin instead of running the tests.
const roleEnv = "PRIMUS_SANDBOX_TEST_ROLE"

func TestMain(m *testing.M) {
	file := os.Args[len(os.Args)-1]
	switch role := os.Getenv(roleEnv); role {
	case "":
		// A plugin in this process keeps its thread.
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/primus-fl/primus/vendors/loader.(*Executor).thread"))
	case "probe", "busy probe":
		if role == "busy probe" {
			for range 300 {
				go func() { select {} }()
			}
		}
		ok, err := sandbox.ServeProbe(file, plugin.Settings{Ops: catalogue}, try)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if !ok {
			os.Exit(1)
		}
	case "host":
		hangInChild(file)
	case "serve":
		if err := sandbox.Serve(file, plugin.Settings{Ops: catalogue}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// probe is what ops of the fixtures take.
type probe struct {
	Out  *tensor.Tensor `op:"0 out update any ?"`
	Mode int            `op:"1 mode"`
	Text int            `op:"2 text"`
}

var probeOp = opregistry.NewOp("probe", opregistry.Schema[probe]{})

// try calls an impl of probeOp once, on the first four of five numbers.
func try(_ opregistry.Source, impl opregistry.Impl, progress func(string)) (found plugin.Trial, err error) {
	run, ok := impl.Run.(opregistry.Func[probe])
	if !ok {
		return found, nil
	}
	progress("small")
	values := make([]float32, 5)
	x, err := tensor.FromSlice(values[:4])
	if err != nil {
		return found, err
	}
	switch err := run(newExec(), probe{Out: x}); {
	case errors.Is(err, opregistry.ErrUnsupported):
		found.Declined++
	case err != nil:
		found.Failure = err.Error()
	default:
		found.Served++
	}
	if values[4] != 0 {
		found.Stray = "it wrote after the end"
	}
	return found, nil
}

var catalogue = append(ops.All(), probeOp, everythingOp)

// serving returns settings for children that play a role.
func serving(role string) sandbox.Settings {
	return sandbox.Settings{Command: []string{os.Args[0]}, Env: append(os.Environ(), roleEnv+"="+role), Timeout: time.Minute}
}

// compile builds a C file of testdata with these macros defined.
func compile(t testing.TB, source string, macros ...string) string {
	t.Helper()
	flags := []string{"-I../../../vendors/abi", fmt.Sprintf("-DPROBE=%#xULL", plugin.LayoutHash(probeOp)), fmt.Sprintf("-DEVERYTHING=%#xULL", plugin.LayoutHash(everythingOp))}
	for _, m := range macros {
		flags = append(flags, "-D"+m)
	}
	return loadertest.Library(t, "libacme.so", source, flags...)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	served := &plugin.Trial{Served: 1}
	tests := []struct {
		macro, reason string
		trial         *plugin.Trial
		control       string // what changed the floating-point environment
	}{
		{macro: "NOTHING", trial: served},
		{macro: "PRINTS", trial: served},
		{macro: "AVAILABLE_NOT", reason: "no driver"},
		{macro: "LOAD_ROUNDS", trial: served, control: "its constructors"},
		{macro: "RUN_ROUNDS", trial: served, control: `run of impl "vendor.acme" of op "probe"`},
		{macro: "RUN_DECLINES", trial: &plugin.Trial{Declined: 1}},
		{macro: "RUN_FAILS", trial: &plugin.Trial{Failure: "the plugin returned 2"}},
	}
	for _, tt := range tests {
		t.Run(tt.macro, func(t *testing.T) {
			t.Parallel()
			r, err := sandbox.Probe(t.Context(), compile(t, "testdata/probe.c", tt.macro), serving("probe"))
			require.NoError(t, err)
			if tt.control != "" {
				require.Len(t, r.Control, 1)
				assert.Contains(t, r.Control[0], tt.control+" changed the floating-point environment, which was restored: rounding towards zero")
				r.Control = nil
			}
			assert.Equal(t, report(tt.reason, tt.trial), r)
		})
	}
}

// report is what a sound library reports.
func report(reason string, trial *plugin.Trial) *plugin.Report {
	return &plugin.Report{Name: "acme_ops", Version: "1.2.0", ABI: "1.2", LeftOut: []plugin.UnusedOp{}, Ops: []plugin.OpReport{{
		Op: "probe", Impl: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Flags: []string{"thread_safe"}, Available: reason == "", Reason: reason, Trial: trial,
	}}}
}

// A library that does harm when it is called is an error that says how, and what it is called is
// known.
func TestProbeTriesOps(t *testing.T) {
	t.Parallel()
	tests := []struct{ macro, want string }{
		{"RUN_CRASH", "it crashed with SIGSEGV (segmentation violation) in run of CALL"},
		{"RUN_EXIT", "it ended its process with status 0 in run of CALL"},
		{"RUN_HANG", "it did not come back within 2s in run of CALL"},
		{"SUPPORTS_CRASH", "it crashed with SIGSEGV (segmentation violation) in supports of CALL"},
		{"WORKSPACE_CRASH", "it crashed with SIGSEGV (segmentation violation) in workspace_size of CALL"},
		{"RUN_STRAYS", `impl "vendor.acme" of op "probe": it wrote after the end`},
	}
	for _, tt := range tests {
		t.Run(tt.macro, func(t *testing.T) {
			t.Parallel()
			path, set := compile(t, "testdata/probe.c", tt.macro), serving("probe")
			if tt.macro == "RUN_HANG" {
				set.Timeout = 2 * time.Second
			}
			r, err := sandbox.Probe(t.Context(), path, set)
			require.EqualError(t, err, "plugin "+path+": "+strings.Replace(tt.want, "CALL", `impl "vendor.acme" of op "probe", case small`, 1))
			if tt.macro == "RUN_STRAYS" {
				require.Equal(t, "it wrote after the end", r.Ops[0].Trial.Stray)
				r.Ops[0].Trial = nil
			}
			assert.Equal(t, report("", nil), r)
		})
	}
}

// A library that is wrong in any way is an error that says how, and this process goes on.
func TestProbeRejects(t *testing.T) {
	t.Parallel()
	entry := "primus_plugin_get_api"
	available := `is_available of impl "vendor.acme" of op "probe"`
	tests := []struct{ macro, want string }{
		{"LOAD_CRASH", "it crashed with SIGSEGV (segmentation violation) in its constructors"},
		{"LOAD_EXIT", `it ended its process with status 0 after the line "acme: no licence" in its constructors`},
		{"LOAD_STATUS", "it ended its process with status 7 in its constructors"},
		{"LOAD_KILL", "it was ended by SIGKILL (killed) in its constructors"},
		{"ENTRY_ABORT", "it crashed with SIGABRT (abort) in " + entry},
		{"ENTRY_EXIT", "it ended its process with status 3 in " + entry},
		{"AVAILABLE_CRASH", "it crashed with SIGSEGV (segmentation violation) in " + available},
		{"UNDEFINED", "undefined symbol: nobody_defines_this"},
		{"NO_ENTRY", "it exports no primus_plugin_get_api, so it is not a plugin for Primus-FL"},
		{"ENTRY_NULL", "it does not speak ABI 1.2"},
		{"ENTRY_GARBAGE=0xdead0000", "its description points to memory that cannot be read"},
		{"ENTRY_GARBAGE=16", "its description points to memory that cannot be read"},
		{"ENTRY_GARBAGE=0xdeaddeaddead0000", "its description points to memory that cannot be read"},
		{"ENTRY_GARBAGE=0xdead0001", "primus_plugin is at 0xdead0001, want an address that is a multiple of 8"},
		{"MAJOR=2", "it has ABI 2.2, this program speaks 1.2"},
		{"SIZE=0", "primus_plugin has struct_size 0, want at least 40; set it to sizeof"},
		{"SIZE=0xffffffff", "primus_plugin has struct_size 4294967295"},
		{"N_OPS=0xffffffff", "n_ops is 4294967295, want at most 4096"},
		{"N_OPS=4", "ops[2] is NULL"},
		{"OPS=NULL", "ops is NULL, want 1 ops"},
		{"OPS=(void*)0xdead0000", "its description points to memory that cannot be read"},
		{"NAME=NULL", `given name "", want words`},
		{`NAME="acme ops"`, `given name "acme ops", want words`},
		{"NAME=endless", "name has no end within 256 bytes"},
		{"NAME=(char*)0xdead0000", "its description points to memory that cannot be read"},
		{`VERSION="1\n2"`, `given version "1\n2", want printable characters`},
		{"OP_SIZE=8", "ops[0] has struct_size 8, want at least 80"},
		{"OP_SIZE=72", "ops[0] has struct_size 72, want at least 80; set it to sizeof and build against the header of this program"},
		{"OP=NULL", "ops[0].op is missing"},
		{"OP=endless", "ops[0].op has no end within 256 bytes"},
		{"ID=(char*)0xdead0000", "its description points to memory that cannot be read"},
		{"RUN=NULL", `ops[0].run of op "probe" is NULL`},
		{"FLAGS=0x100", `ops[0].flags of op "probe" is 0x100, which has unknown bits`},
		{"KIND=9", `ops[0].kind of op "probe" is 9;`},
		{"KIND=PRIMUS_KIND_FLAGOS", `ops[0].kind of op "probe" is PRIMUS_KIND_FLAGOS; impls of that kind are this program's own, want PRIMUS_KIND_VENDOR`},
		{"KIND=PRIMUS_KIND_REFERENCE", `ops[0].kind of op "probe" is PRIMUS_KIND_REFERENCE;`},
		{`ID="acme/1"`, `given id "acme/1"`},
		{"VENDOR=NULL", "given kind vendor without a vendor"},
		{"N_OPS=2", `impl "vendor.acme" of op "probe" from source "acme_ops" is registered already`},
	}
	for _, tt := range tests {
		t.Run(tt.macro, func(t *testing.T) {
			t.Parallel()
			path := compile(t, "testdata/probe.c", tt.macro)
			r, err := sandbox.Probe(t.Context(), path, serving("probe"))
			assert.Nil(t, r)
			assert.ErrorContains(t, err, path+": ")
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestProbeTimeOut(t *testing.T) {
	t.Parallel()
	for macro, where := range map[string]string{"LOAD_HANG": "its constructors", "AVAILABLE_HANG": `is_available of impl "vendor.acme" of op "probe"`} {
		t.Run(macro, func(t *testing.T) {
			t.Parallel()
			path, set := compile(t, "testdata/probe.c", macro), serving("probe")
			set.Timeout = 2 * time.Second
			_, err := sandbox.Probe(t.Context(), path, set)
			require.EqualError(t, err, "plugin "+path+": it did not come back within 2s in "+where)
		})
	}
}

// Go prints much about a crash of a process that has many goroutines.
func TestProbeNamesTheCrashOfABusyProcess(t *testing.T) {
	t.Parallel()
	path := compile(t, "testdata/probe.c", "RUN_CRASH")
	_, err := sandbox.Probe(t.Context(), path, serving("busy probe"))
	require.EqualError(t, err, "plugin "+path+`: it crashed with SIGSEGV (segmentation violation) in run of impl "vendor.acme" of op "probe", case small`)
}

func TestProbeIsCancelled(t *testing.T) {
	t.Parallel()
	path := compile(t, "testdata/probe.c", "LOAD_HANG")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := sandbox.Probe(ctx, path, serving("probe"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestProbeWithoutAProgram(t *testing.T) {
	t.Parallel()
	_, err := sandbox.Probe(t.Context(), "libx.so", sandbox.Settings{Timeout: time.Second})
	require.ErrorContains(t, err, "given no command")
	_, err = sandbox.Probe(t.Context(), "libx.so", sandbox.Settings{Command: []string{"/nonexistent/primus"}, Timeout: time.Second})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = sandbox.Probe(t.Context(), "libx.so", sandbox.Settings{Command: []string{"/bin/echo"}, Timeout: 10 * time.Second})
	require.ErrorContains(t, err, `its process printed "libx.so", want a report`)
}
