package preflight_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/preflight"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func node(host string, rank int, at time.Time, checks ...preflight.Check) preflight.Node {
	return preflight.Judge(&preflight.Report{Host: host, Time: at, Checks: checks, Facts: map[string]string{"kernel": "6.1"}}, rank)
}

func TestNodes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dump")
	bad := preflight.Check{Group: preflight.GPU, Name: "device 0", Status: preflight.Fail, Value: "hot", Advice: "cool it"}
	now := time.Now()
	require.NoError(t, preflight.WriteNode(dir, node("a.example", 1, now, bad)))
	require.NoError(t, preflight.WriteNode(dir, node("b", 0, now.Add(-time.Minute), preflight.Check{Status: preflight.Warn})))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "smoke", "c.json"), []byte("{"), 0o644))

	nodes, err := preflight.WaitForNodes(t.Context(), dir, preflight.Expected{Count: 3}, time.Minute)
	require.NoError(t, err)
	require.Len(t, nodes, 3)
	assert.Equal(t, []string{"b", "c", "a"}, []string{nodes[0].Host, nodes[1].Host, nodes[2].Host})
	assert.True(t, nodes[0].Passed())
	assert.Contains(t, nodes[1].FailReasons[0], "its file cannot be read")
	assert.Equal(t, []string{"device 0: hot: cool it"}, nodes[2].FailReasons)

	drift := preflight.Drift(nodes, preflight.DefaultLimits())
	require.Len(t, drift, 2)
	assert.Equal(t, "none between 2 ranks", drift[0].Value)
	assert.Equal(t, "b is 1m0s behind a.example", drift[1].Value)

	want := preflight.Expected{Count: 3, Hosts: []string{"a", "b", "d"}}
	nodes, err = preflight.WaitForNodes(t.Context(), dir, want, 10*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, nodes, 3)
	assert.Equal(t, "d", nodes[2].Host)
	assert.Contains(t, nodes[2].FailReasons[0], "no verdict within 10ms")

	require.NoError(t, preflight.WriteLists(dir, nodes, want))
	for name, text := range map[string]string{"passing_nodes.txt": "b\n", "failing_nodes.txt": "a\nd\n", "expected_nodes.txt": "a\nb\nd\n"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, text, string(got), name)
	}

	unnamed, err := preflight.WaitForNodes(t.Context(), dir, preflight.Expected{Count: 5}, 0)
	require.NoError(t, err)
	assert.Len(t, unnamed, 5)
	require.NoError(t, preflight.WriteLists(dir, unnamed, preflight.Expected{}))
	got, err := os.ReadFile(filepath.Join(dir, "failing_nodes.txt"))
	require.NoError(t, err)
	assert.Equal(t, "c\na\n", string(got), "a node without a name is in no list")
}

// The verdict of another host, or of one whose name is no word, adds no line to the lists.
func TestForeignVerdicts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "smoke"), 0o755))
	for name, text := range map[string]string{
		"a": `{"host": "a\nlogin1", "status": "PASS"}`, "b": `{"host": "c", "status": "PASS"}`, "d e": `{"host": "d e", "status": "PASS"}`, "f\ng": "{",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "smoke", name+".json"), []byte(text), 0o600))
	}
	nodes, err := preflight.WaitForNodes(t.Context(), dir, preflight.Expected{Count: 4}, time.Minute)
	require.NoError(t, err)
	require.NoError(t, preflight.WriteLists(dir, nodes, preflight.Expected{}))
	for name, want := range map[string]string{"passing_nodes.txt": "", "failing_nodes.txt": "a\nb\n"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), name)
	}
}

func TestRemoveStale(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, preflight.WriteNode(dir, node("old", 0, time.Now())))
	require.NoError(t, preflight.WriteNode(dir, node("new", 1, time.Now())))
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "smoke", "old.json"), past, past))
	require.NoError(t, preflight.RemoveStale(dir, time.Minute))
	assert.NoFileExists(t, filepath.Join(dir, "smoke", "old.json"))
	assert.FileExists(t, filepath.Join(dir, "smoke", "new.json"))
	require.NoError(t, preflight.RemoveStale(filepath.Join(dir, "missing"), time.Minute))
}
