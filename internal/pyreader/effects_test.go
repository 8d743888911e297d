package pyreader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEffects reads what handlers change from a checkout that has just one file of patches.
func TestEffects(t *testing.T) {
	tests := []struct {
		name, body string
		symbols    []string
		styles     []pyreader.Style
	}{
		{
			name:    "function that is replaced",
			body:    "from megatron import training\ntraining.step = print",
			symbols: []string{"megatron.training.step"}, styles: []pyreader.Style{pyreader.Replace},
		},
		{
			name: "default of a field of a dataclass",
			body: "from megatron import moe\n" +
				"field = moe.Submodules.__dataclass_fields__['router']\n" +
				"field.default = print\n" +
				"field.default_factory = None",
			symbols: []string{"megatron.moe.Submodules.router.default", "megatron.moe.Submodules.router.default_factory"},
			styles:  []pyreader.Style{pyreader.Mutate},
		},
		{
			name:    "entry of a registry",
			body:    "from megatron import registry\nregistry.converters['fp8'] = print",
			symbols: []string{"megatron.registry.converters['fp8']"}, styles: []pyreader.Style{pyreader.Item},
		},
		{
			name:    "variable of the environment",
			body:    "import os\nos.environ['A'] = '1'",
			symbols: []string{}, styles: []pyreader.Style{pyreader.Env},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := writeCheckout(t, test.body)
			require.Len(t, c.Records, 1)
			assert.Equal(t, test.symbols, c.Records[0].Symbols)
			assert.Equal(t, test.styles, c.Records[0].Styles)
		})
	}
}

// TestConditionOfItself puts a variable into words that is set to something of itself.
func TestConditionOfItself(t *testing.T) {
	t.Parallel()
	c := writeCheckout(t, "pass")
	require.NotNil(t, c.Records[0].Condition)
	assert.Equal(t, "str(kind)", c.Records[0].Condition.Words)
}

// writeCheckout writes and opens a checkout with one patch, whose handler has a body.
func writeCheckout(t *testing.T, body string) *pyreader.Checkout {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"primus/core/patches/__init__.py": "def register_patch(patch_id, **kwargs):\n    return lambda fn: fn\n",
		"primus/backends/megatron/patches/__init__.py": "from primus.core.patches import register_patch\n" +
			"def helper(ctx, kind='a'):\n    kind = str(kind)\n    return kind\n" +
			"@register_patch('one', backend='megatron', phase='setup', condition=helper)\n" +
			"def handler(ctx):\n",
	}
	for line := range strings.Lines(body) {
		files["primus/backends/megatron/patches/__init__.py"] += "    " + line
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	c, err := pyreader.Open(t.Context(), dir)
	require.NoError(t, err)
	return c
}
