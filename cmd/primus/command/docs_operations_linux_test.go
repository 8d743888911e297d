package command_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOperations follows the guide from nothing to a fleet.
func TestOperations(t *testing.T) {
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	commandtest.Tools(t, "bash", "curl", "jq", "openssl", "prometheus", "promtool", "etcd")
	assert.GreaterOrEqual(t, followGuide(t, "howto/operations.md"), 9)
}

// TestServiceGuide follows what the guide of the service shows of its API.
func TestServiceGuide(t *testing.T) {
	t.Parallel()
	commandtest.Tools(t, "bash", "curl", "jq", "openssl")
	assert.Equal(t, 1, followGuide(t, "reference/service.md"))
}

// followGuide runs the commands of a guide in one shell, with ports that are free, scrapes that are
// more frequent and a model that is smaller: they succeed and print what the guide shows after
// them. It returns how many outputs the guide shows.
func followGuide(t *testing.T, name string) int {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	require.NoError(t, err)

	l := commandtest.NewLab(t)
	require.NoError(t, os.Symlink(filepath.Join(root, "metrics"), filepath.Join(l.Dir, "metrics")))
	tiny, err := os.ReadFile(l.Exp)
	require.NoError(t, err)
	endless := strings.NewReplacer("train_iters: 8", "train_iters: 100000000", "log_interval: 1", "log_interval: 1000", "NAME:exp}", "NAME:llama_2M-pretrain}", l.Workspace, "./output").Replace(string(tiny))
	l.Write(filepath.Join(l.Dir, "examples", "native", "configs", "llama_2M-pretrain.yaml"), endless)
	here := strings.NewReplacer(append(freePorts(t, "2379", "2380", "9090", "9400", "9401", "9402"), "_interval: 5s", "_interval: 1s")...)
	return runCommands(t, l.Dir, string(text), here)
}

// freePorts returns replacements of ports by ones that are free.
func freePorts(t *testing.T, ports ...string) (changes []string) {
	t.Helper()
	for _, port := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, free, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		changes = append(changes, ":"+port, ":"+free)
		require.NoError(t, listener.Close())
	}
	return changes
}

// runCommands runs the commands of a text in one shell in a directory: they succeed and print what
// the text shows after them. It returns how many outputs the text shows.
func runCommands(t *testing.T, dir, text string, here *strings.Replacer) int {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "primus")))
	var script strings.Builder
	var want [][]string
	for _, b := range commandtest.Blocks(text) {
		switch b.Language {
		case "sh":
			script.WriteString(here.Replace(strings.Join(b.Lines, "\n")) + "\n")
		case "text":
			fmt.Fprintf(&script, "echo 'end of block %d'\n", len(want))
			want = append(want, b.Lines)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(commandtest.Child(t.Context(), nil).Env, "USER=alice", "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a failed script has left
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(dir, "*", "*.log"))
		for _, name := range logs {
			log, err := os.ReadFile(name)
			require.NoError(t, err)
			t.Logf("%s:\n%s", name, log)
		}
	}
	require.NoError(t, err, "%s", out)

	rest := string(out)
	for i, lines := range want {
		printed, after, found := strings.Cut(rest, fmt.Sprintf("end of block %d\n", i))
		require.True(t, found, rest)
		rest = after
		printed = commandtest.OneSpace(printed)
		for _, line := range lines {
			_, left, found := strings.Cut(printed, commandtest.OneSpace(here.Replace(line)))
			require.True(t, found, "%q in this order in\n%s", line, printed)
			printed = left
		}
	}
	return len(want)
}
