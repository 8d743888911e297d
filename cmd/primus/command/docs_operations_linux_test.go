package command_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOperations follows the guide.
func TestOperations(t *testing.T) {
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	commandtest.Tools(t, "bash", "curl", "jq", "openssl", "prometheus", "promtool")
	assert.GreaterOrEqual(t, followGuide(t, "howto/operations.md"), 8)
}

// TestPolicyForAFleet follows the tutorial. Its lines have the form of those that are printed, and
// those that end in … are the beginning of one.
func TestPolicyForAFleet(t *testing.T) {
	primustest.Sequential(t, "it types the commands of a page")
	primustest.Long(t, "it types the commands of a page")
	t.Parallel()
	commandtest.Tools(t, "bash", "etcd", "go")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tutorials", "a-policy-for-a-fleet.md"))
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	names := regexp.MustCompile(`(one|two)-0-[0-9a-f]{8}|\b\w+@\w[\w.-]*|\b(vm|` + regexp.QuoteMeta(host) + `)\b`)
	plain := func(line string) string {
		return form(names.ReplaceAllStringFunc(line, func(name string) string {
			if run, _, found := strings.Cut(name, "-0-"); found {
				return run
			}
			return "name"
		}))
	}
	outputs := typeCommands(t, t.TempDir(), string(text), strings.NewReplacer(freePorts(t, "2379", "2380")...))
	for _, o := range outputs {
		for _, line := range o.shown {
			begin, cut := strings.CutSuffix(plain(line), " …")
			found := slices.ContainsFunc(strings.Split(o.printed, "\n"), func(printed string) bool {
				printed = plain(printed)
				return printed == begin || cut && strings.HasPrefix(printed, begin)
			})
			assert.True(t, found || line == "…", "%q in\n%s", line, o.printed)
		}
	}
	assert.Len(t, outputs, 6)
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
	here := strings.NewReplacer(append(freePorts(t, "9090", "9400"), "_interval: 5s", "_interval: 1s")...)
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
	outputs := typeCommands(t, dir, text, here)
	for _, o := range outputs {
		printed := commandtest.OneSpace(o.printed)
		for _, line := range o.shown {
			_, left, found := strings.Cut(printed, commandtest.OneSpace(here.Replace(line)))
			require.True(t, found, "%q in this order in\n%s", line, printed)
			printed = left
		}
	}
	return len(outputs)
}

// output is what a text shows after commands, and what they printed.
type output struct {
	shown   []string
	printed string
}

// typeCommands types the commands of a text into one shell in a directory, and returns what they
// print where the text shows it. They succeed, but for the last one of a block marked exit=1.
func typeCommands(t *testing.T, dir, text string, here *strings.Replacer) []output {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "primus")))
	var script strings.Builder
	var outputs []output
	for _, b := range commandtest.Blocks(text) {
		switch b.Language {
		case "sh":
			script.WriteString(here.Replace(strings.Join(b.Lines, "\n")) + "\n")
		case "sh exit=1":
			fmt.Fprintf(&script, "code=0\n%s || code=$?\ntest $code = 1\n", here.Replace(strings.Join(b.Lines, "\n")))
		case "text":
			fmt.Fprintf(&script, "echo 'end of block %d'\n", len(outputs))
			outputs = append(outputs, output{shown: b.Lines})
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
		for _, pattern := range []string{"*.log", "*/*.log"} {
			logs, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, name := range logs {
				log, err := os.ReadFile(name)
				require.NoError(t, err)
				t.Logf("%s:\n%s", name, log)
			}
		}
	}
	require.NoError(t, err, "%s", out)

	rest := string(out)
	for i := range outputs {
		var found bool
		outputs[i].printed, rest, found = strings.Cut(rest, fmt.Sprintf("end of block %d\n", i))
		require.True(t, found, rest)
	}
	return outputs
}
