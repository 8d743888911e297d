package config_test

import (
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/runtime/config"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	object := func(data map[string]any) *config.Map {
		m, ok := fromGo(t, data).Map()
		require.True(t, ok)
		return m
	}
	base := object(map[string]any{"a": map[string]any{"x": 1, "y": 2}, "b": []any{1, 2}, "c": map[string]any{"z": 1}})
	over := object(map[string]any{"a": map[string]any{"y": 3, "w": 4}, "b": []any{9}, "c": nil, "d": 5})
	got := config.Merge(base, over)
	assert.Equal(t, map[string]any{
		"a": map[string]any{"x": int64(1), "y": int64(3), "w": int64(4)}, "b": []any{int64(9)}, "c": nil, "d": int64(5),
	}, got.Any())
	assert.Equal(t, []string{"a", "b", "c", "d"}, got.Keys())
	y, _ := base.Get("a.y")
	assert.Equal(t, int64(2), y.Any(), "arguments stay as they are")
	assert.True(t, config.Merge(nil, base).Equal(base))
	assert.True(t, config.Merge(base, nil).Equal(base))
	assert.False(t, base.Equal(over))
	var none *config.Map
	assert.Zero(t, none.Len())
	assert.Empty(t, none.Keys())
}

func TestValuesRememberWhatTheyReplaced(t *testing.T) {
	t.Parallel()
	dir := write(t, files{
		"base.yaml": "modules:\n  pre_trainer:\n    overrides: {lr: 2.0, nested: 5, same: 1}\n",
		"exp.yaml":  "extends: base.yaml\n" + experimentHead + trainer + "    overrides: {lr: 3.0, nested: {a: 1}, same: 1}\n",
	})
	exp, err := config.LoadExperiment(filepath.Join(dir, "exp.yaml"), config.Options{
		Presets: []config.Root{memoryRoot(files{
			"modules/fw/base.yaml": "lr: 0.5\n", "modules/fw/t.yaml": "extends: base.yaml\nlr: 1.0\nnested: {a: 0, b: 2}\nshared: 1\n",
			"models/fw/m.yaml": "shared: 2\n",
		})},
		Overrides: []string{"lr=4.0", "lr=5.0", "nested.a=9"},
	})
	require.NoError(t, err)
	params := exp.Modules[0].Params
	for path, want := range map[string][]any{
		"lr":       {4.0, 3.0, 2.0, 1.0, 0.5},
		"nested":   {int64(5)},
		"nested.a": {int64(1), int64(0)},
		"nested.b": nil,
		"same":     {int64(1)},
		"shared":   {int64(2)},
	} {
		var got []any
		for _, old := range value(t, params, path).Replaced() {
			assert.False(t, old.Origin().IsZero(), path)
			got = append(got, old.Any())
		}
		assert.Equal(t, want, got, path)
	}
	assert.Equal(t, `override 1 "lr=4.0"`, value(t, params, "lr").Replaced()[0].Origin().String())
}

func TestStrictRefusesValuesWithoutEffect(t *testing.T) {
	t.Parallel()
	text := "lora: {rank: 8}\n" + experimentHead + trainer
	_, err := load(t, text, basicPresets, config.Options{Strict: true})
	require.ErrorIs(t, err, config.ErrNoEffect)
	require.ErrorContains(t, err, "exp.yaml:1:7: lora: a mapping of 1 has no effect")
	require.ErrorContains(t, err, `embedded/models/fw/m.yaml:2:9: modules.pre_trainer.shared: string "model" of the model preset`)

	exp, err := load(t, experimentHead+trainer, files{"modules/fw/t.yaml": "a: 1\nb: 2\n", "models/fw/m.yaml": "a: 1\n"},
		config.Options{Strict: true, Overrides: []string{"new_key=1"}})
	require.NoError(t, err, "equal values do not collide, and new keys are legal")
	assert.True(t, exp.Strict)
	require.NoError(t, exp.Report.Err())
}

// countingFS counts the files that are opened.
type countingFS struct {
	fs.FS
	opened *atomic.Int64
}

func (c countingFS) Open(name string) (fs.File, error) {
	c.opened.Add(1)
	return c.FS.Open(name)
}

func TestCacheReadsPresetsOnce(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	root := memoryRoot(files{"modules/fw/t.yaml": "a: 1\na: 2\nb: ${NO_B:''}\n", "models/fw/m.yaml": "c: 1\n"})
	root.FS = countingFS{root.FS, &opened}
	dir := write(t, files{"exp.yaml": experimentHead + trainer})
	options := config.Options{Presets: []config.Root{root}, Env: environment(nil), Cache: &config.Cache{}}
	first, err := config.LoadExperiment(filepath.Join(dir, "exp.yaml"), options)
	require.NoError(t, err)
	once := opened.Load()
	again, err := config.LoadExperiment(filepath.Join(dir, "exp.yaml"), options)
	require.NoError(t, err)
	assert.Less(t, opened.Load()-once, once, "existence is still checked, content is not read")
	assert.True(t, first.View().Equal(again.View()))
	assert.Equal(t, noticed(first), noticed(again))
	assert.Len(t, noticed(again), 2)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	a, b := params(t, "x=1", "m.a=1", "m.b=[1]", "gone=1"), params(t, "m.a=1.0", "m.b=[1]", "m.c=None", "x=1", "new={'k': 1}")
	var got []string
	for _, d := range config.Diff(a, b) {
		line := d.Path
		for _, side := range []*config.Value{d.A, d.B} {
			if side != nil {
				line += " " + side.String()
			} else {
				line += " -"
			}
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{"m.a 1 1.0", "m.c - null", "gone 1 -", `new - {"k":1}`}, got)
	assert.Empty(t, config.Diff(a, a))
}
