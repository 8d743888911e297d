package pyreader_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared is where the facts about Primus lie beside a checkout of this module.
var shared = filepath.Join("..", "..", "..", "shared", "fixtures", "primus-patches")

// checkout opens the checkout that a variable names.
func checkout(t *testing.T) *pyreader.Checkout {
	t.Helper()
	dir := os.Getenv("PRIMUS_CHECKOUT")
	if dir == "" {
		t.Skip("PRIMUS_CHECKOUT does not name a checkout of Primus")
	}
	c, err := pyreader.Open(t.Context(), dir)
	require.NoError(t, err)
	return c
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("no recorded facts: %v", err)
	}
	require.NoError(t, json.Unmarshal(text, into))
}

// TestInventory compares what is read from a checkout with what Primus itself registered when it
// was run.
func TestInventory(t *testing.T) {
	c := checkout(t)
	var recorded struct{ Patches []map[string]any }
	readJSON(t, filepath.Join(shared, "inventory_visible.json"), &recorded)
	require.NotEmpty(t, recorded.Patches)
	for _, want := range recorded.Patches {
		var got map[string]any
		text, err := json.Marshal(c.Records[int(want["registration_index"].(float64))])
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &got))
		delete(want, "target_check")
		for field, value := range want {
			if condition, ok := value.(map[string]any); ok {
				require.NotNil(t, got[field], want["id"])
				for name, v := range condition {
					assert.Equal(t, v, got[field].(map[string]any)[name], "%s: condition: %s", want["id"], name)
				}
				continue
			}
			assert.Equal(t, value, got[field], "%s: %s", want["id"], field)
		}
	}
	assert.Empty(t, c.Faults)
}

// TestCount compares the number of registrations with that of the lines with a decorator.
func TestCount(t *testing.T) {
	c := checkout(t)
	grep, err := exec.LookPath("grep")
	if err != nil {
		t.Skipf("no grep: %v", err)
	}
	out, err := exec.Command(grep, "-rEh", `^#?\s*@register_patch\(`, "--include=*.py", filepath.Join(c.Root, "primus", "backends")).Output()
	require.NoError(t, err)
	decorators, comments := 0, 0
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "#") {
			comments++
		} else {
			decorators++
		}
	}
	t.Logf("%d registrations, %d of them commented out by grep; %d and %d by the scan", decorators+comments, comments, len(c.Records), len(c.Disabled))
	assert.Len(t, c.Records, decorators)
	assert.Len(t, c.Disabled, comments)
	for _, r := range c.Records {
		assert.Empty(t, r.Unknown, r.ID)
	}
}

// TestCheck compares how targets stand in the source trees of frameworks with what was recorded for
// them. MEGATRON_CHECKOUT and TORCHTITAN_CHECKOUT name the trees.
func TestCheck(t *testing.T) {
	c := checkout(t)
	var trees []string
	for _, name := range []string{"MEGATRON_CHECKOUT", "TORCHTITAN_CHECKOUT"} {
		if dir := os.Getenv(name); dir != "" {
			trees = append(trees, dir)
		}
	}
	if len(trees) < 2 {
		t.Skip("MEGATRON_CHECKOUT and TORCHTITAN_CHECKOUT do not name source trees")
	}
	var recorded struct {
		Patches []struct {
			ID     string
			Checks map[string]string `json:"target_check"`
		}
	}
	readJSON(t, filepath.Join(shared, "inventory_visible.json"), &recorded)
	findings, err := c.Check(t.Context(), trees...)
	require.NoError(t, err)
	got := map[string]pyreader.Finding{}
	counts := map[pyreader.Status]int{}
	for _, f := range findings {
		got[f.Patch+" "+f.Target] = f
		counts[f.Status]++
	}
	t.Logf("%v", counts)
	for _, r := range recorded.Patches {
		for target, want := range r.Checks {
			status, _, _ := strings.Cut(want, ":")
			want := map[string]pyreader.Status{"ok": pyreader.There, "missing": "missing", "external": pyreader.External}[status]
			assert.Equal(t, want, got[r.ID+" "+target].Status, "%s: %s", r.ID, target)
		}
	}
	assert.Zero(t, counts["anchor"])
}
