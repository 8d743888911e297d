package primustest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a killed test has started ends: its child, and the child of that in a session of its own.
func TestEndChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it asks /proc")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var pids []string
	for len(pids) < 2 && lines.Scan() {
		pids = append(pids, lines.Text())
	}
	for _, pid := range pids {
		require.False(t, ended(pid), "process %s", pid)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	require.Len(t, pids, 2)
	for _, pid := range pids {
		Wait{What: "the end of process " + pid, Until: func() bool { return ended(pid) }}.Do(t)
	}
}

// ended reports whether a process has ended. Nobody may have waited for it.
func ended(pid string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, state, _ := strings.Cut(string(text), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

// beParent starts a process that starts another one, prints the numbers of both and waits.
func beParent() {
	EndChildren()
	cmd := exec.Command("sh", "-c", "setsid sleep 1000 & echo $$; echo $!; sleep 1000")
	cmd.Stdout = os.Stdout
	runtime.GC() // which must not take the guard
	if err := cmd.Start(); err == nil {
		_ = cmd.Wait()
	}
}
