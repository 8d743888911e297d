package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/plugin/sandbox"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// hangInChild is a host whose isolated plugin never answers.
func hangInChild(path string) {
	report, err := sandbox.Probe(context.Background(), path, serving("probe"))
	if err != nil {
		fmt.Println(err)
		return
	}
	i, err := sandbox.Isolate(path, report, catalogue, serving("serve"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := tensor.FromSlice([]float32{1})
	if err != nil {
		fmt.Println(err)
		return
	}
	run := i.Source().Impls[0].Run.(opregistry.Func[probe])
	fmt.Println(run(newExec(), probe{Out: x}))
	fmt.Println(run(newExec(), probe{Out: x, Mode: 4}))
}

// A plugin that hangs does not outlive the program that it belongs to.
func TestIsolatedProcessEndsWithItsHost(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	host := exec.CommandContext(t.Context(), os.Args[0], compile(t, "testdata/isolated.c"))
	host.Env = append(os.Environ(), roleEnv+"=host")
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "<nil>\n", line, "the process serves calls")
	children := childrenOf(t, host.Process.Pid)
	require.Len(t, children, 1)
	require.NoError(t, host.Process.Kill())
	assert.Error(t, host.Wait())
	require.Eventually(t, func() bool {
		state, err := os.ReadFile("/proc/" + children[0] + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ") // ended, if not yet waited for
	}, 2*time.Minute, time.Millisecond)
}

func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	var children []string
	for _, list := range lists {
		text, err := os.ReadFile(list)
		require.NoError(t, err)
		children = append(children, strings.Fields(string(text))...)
	}
	return children
}

// What a library has started ends with its probe, however the probe ends, also when it has left its
// parent and its session.
func TestProbeEndsWhatALibraryLeaves(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	for _, macro := range []string{"NOTHING", "LOAD_CRASH", "LOAD_EXIT", "LOAD_HANG", "LOAD_KILL", "RUN_CRASH"} {
		t.Run(macro, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "daemon")
			set := serving("probe")
			set.Env = append(set.Env, "PRIMUS_TEST_DAEMON="+file)
			if macro == "LOAD_HANG" {
				set.Timeout = 2 * time.Second
			}
			report, err := sandbox.Probe(t.Context(), compile(t, "testdata/probe.c", "LOAD_FORKS", macro), set)
			if macro == "NOTHING" {
				require.NoError(t, err)
				assert.Equal(t, 1, report.Processes)
			} else {
				require.Error(t, err)
			}
			pid, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.NoDirExists(t, "/proc/"+string(pid))
		})
	}
}
