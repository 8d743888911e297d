package runs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const resolved = `work_group: g
exp_name: e
platform: {config: local.yaml, overrides: {name: p}}
modules:
  pre_trainer:
    framework: native
    params: {lr: 1.0e-3, wd: 0.1, deep: {a: 1, b: [1, 2]}, none: null}
`

func compared(t *testing.T, configs ...string) (runs.Comparison, error) {
	t.Helper()
	root := t.TempDir()
	for i, text := range configs {
		dir := filepath.Join(root, string(rune('a'+i)))
		newWriter(t, dir).train(i + 1).end(nil)
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
		}
	}
	a := open(t, root)
	var all []runs.Run
	for i := range configs {
		r, err := a.Find(string(rune('a' + i)))
		require.NoError(t, err)
		all = append(all, r)
	}
	return runs.Compare(t.Context(), all)
}

func TestCompare(t *testing.T) {
	c, err := compared(t, resolved, `exp_name: other
platform: {config: local.yaml, overrides: {name: q}}
modules:
  post_trainer:
    framework: native
    params: {lr: 1.0e-3, wd: 0.1, deep: {a: 1, b: [1, 3]}, more: x}
`)
	require.NoError(t, err)
	got := map[string][]string{}
	for _, p := range c.Parameters {
		for _, v := range p.Values {
			text := "-"
			if v != nil {
				text = *v
			}
			got[p.Key] = append(got[p.Key], text)
		}
	}
	assert.Equal(t, map[string][]string{
		"deep.b": {"[1,2]", "[1,3]"}, "none": {"null", "-"}, "more": {"-", "x"}, "platform.overrides.name": {"p", "q"},
	}, got, "also between modules of different names")
	for _, f := range c.Figures {
		if f.Name == "loss" {
			assert.InDelta(t, -5, *f.Differences[1], 1e-12)
			assert.InDelta(t, 0, *f.Differences[0], 0)
		}
		if f.Name == "valid_loss" {
			assert.Equal(t, []*float64{nil, nil}, f.Differences)
		}
	}

	_, err = compared(t, resolved, "")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = compared(t, resolved, "- 1\n")
	require.ErrorContains(t, err, "want the configuration of a run")
	_, err = compared(t, resolved, "a: [\n")
	require.ErrorContains(t, err, "config.yaml")
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"x/one", "y/one", "y/two"} {
		newWriter(t, filepath.Join(root, dir)).train(1).end(nil)
	}
	a := open(t, root)
	for name, want := range map[string]string{"two": "y/two", "y/one": "y/one", "x/one": "x/one"} {
		r, err := a.Find(name)
		require.NoError(t, err)
		assert.Equal(t, want, r.ID)
	}
	_, err := a.Find("one")
	require.ErrorContains(t, err, "want one of x/one, y/one")
	_, err = a.Find("wo")
	assert.ErrorContains(t, err, `no run "wo"`)
}
