package pyreader_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMegatronDefaults compares the defaults that are read from a checkout of Megatron-LM 0.16 with
// those that its own parser gave. MEGATRON_CHECKOUT names the checkout.
func TestMegatronDefaults(t *testing.T) {
	dir := os.Getenv("MEGATRON_CHECKOUT")
	if dir == "" {
		t.Skip("MEGATRON_CHECKOUT does not name a checkout of Megatron-LM")
	}
	d, err := pyreader.MegatronDefaults(t.Context(), dir)
	require.NoError(t, err)
	recorded, err := os.ReadFile("megatron_defaults.tsv")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(recorded)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), "\t")
		value, found := d.Values[name]
		assert.True(t, found, name)
		got, err := json.Marshal(value)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got), name)
		n++
	}
	t.Logf("%d of %d recorded, %d unknown: %v", n, len(d.Values), len(d.Unknown), d.Unknown)
	assert.LessOrEqual(t, len(d.Values)-n, 2, "two belong to a package that was not installed")
	assert.Empty(t, d.Unknown)
}

// TestDefaults reads a parser with everything that Megatron-LM makes one of.
func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"megatron/training/arguments.py": `
import os
from megatron.training.argument_utils import ArgumentGroupFactory

def add(parser):
    from megatron.core.config import Model
    exclude = ["hidden"]
    ArgumentGroupFactory(Model, exclude=exclude).build_group(parser, "model")
    group = parser.add_argument_group(title='other')
    group.add_argument('--lr', type=float, default=None)
    group.add_argument('--no-bias', '--disable-bias', action='store_false', dest='bias')
    group.add_argument('--bias', action='store_true')
    group.add_argument('--fp-16', action='store_true')
    group.add_argument('--size', default=2**4)
    group.add_argument('--shift', default=-1.5)
    group.add_argument('--names', nargs='+', default=["a", "b"])
    group.add_argument('--world', default=int(os.getenv('WORLD_SIZE', '1')))
    group.add_argument('--computed', default=compute())
`,
		"megatron/core/config/__init__.py": "from .model import Model\n",
		"megatron/core/config/model.py": `
from dataclasses import dataclass, field
from megatron.core.base import Base

@dataclass
class Model(Base):
    kind: Kind = Kind.auto
    layers: int = 4
    steps: list = field(default_factory=list)
    pair: list = field(default_factory=lambda: [1, 2])
    meta: int = field(default=1, metadata={"argparse_meta": {"default": 7}})
    use_profiler: bool = field(default=False, metadata={"argparse_meta": {"arg_names": ["--profile"], "dest": "profile"}})
    late: int = field(default=3, init=False)
    shared: ClassVar[int] = 9
    hidden: int = 5
`,
		"megatron/core/package_info.py": "MAJOR = 0\nMINOR = 17\nPATCH = 1\nPRE_RELEASE = ''\n",
		"megatron/core/base.py":         "class Base:\n    layers: int = 1\n    seed: int = 1234\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	d, err := pyreader.MegatronDefaults(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"kind": "auto", "layers": int64(4), "seed": int64(1234), "steps": []any{}, "pair": []any{int64(1), int64(2)}, "meta": int64(7), "profile": false,
		"lr": nil, "bias": true, "fp_16": false, "size": int64(16), "shift": -1.5, "names": []any{"a", "b"}, "world": int64(1),
	}, d.Values)
	assert.Equal(t, []string{"computed"}, d.Unknown)
	assert.Equal(t, "0.17.1", d.Version)

	_, err = pyreader.MegatronDefaults(t.Context(), filepath.Join(dir, "megatron"))
	assert.ErrorContains(t, err, "want the root of a checkout of Megatron-LM")
	_, err = pyreader.MegatronDefaults(t.Context(), filepath.Join(dir, "none"))
	assert.ErrorContains(t, err, "want a folder")
}
