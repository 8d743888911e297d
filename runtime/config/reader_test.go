package config_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

// countingFS counts the files that are opened.
type countingFS struct {
	fs.FS
	opened *atomic.Int64
}

func (c countingFS) Open(name string) (fs.File, error) {
	c.opened.Add(1)
	return c.FS.Open(name)
}

// Loading ends with its context, also between the files of an experiment.
func TestLoadingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var opened atomic.Int64
	root := memoryRoot(files{"modules/fw/t.yaml": "a: 1\n", "models/fw/m.yaml": "c: 1\n"})
	root.FS = countingFS{root.FS, &opened}
	dir := write(t, files{"exp.yaml": experimentHead + trainer})
	options := config.Options{Formats: formats.All(), Presets: []config.Root{root}, Env: func(string) (string, bool) {
		cancel()
		return "", false
	}}
	_, err := config.LoadExperiment(ctx, filepath.Join(dir, "exp.yaml"), options)
	require.NoError(t, err, "no variable was asked for")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "exp.yaml"), []byte(experimentHead+"seen: ${SEEN:1}\n"+trainer), 0o600))
	_, err = config.LoadExperiment(ctx, filepath.Join(dir, "exp.yaml"), options)
	require.ErrorIs(t, err, context.Canceled)
	_, err = config.LoadExperiment(ctx, filepath.Join(dir, "exp.yaml"), options)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCacheReadsPresetsOnce(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	root := memoryRoot(files{"modules/fw/t.yaml": "a: 1\na: 2\nb: ${NO_B:''}\n", "models/fw/m.yaml": "c: 1\n"})
	root.FS = countingFS{root.FS, &opened}
	dir := write(t, files{"exp.yaml": experimentHead + trainer})
	options := config.Options{Formats: formats.All(), Presets: []config.Root{root}, Env: environment(nil), Cache: &config.Cache{}}
	first, err := config.LoadExperiment(t.Context(), filepath.Join(dir, "exp.yaml"), options)
	require.NoError(t, err)
	once := opened.Load()
	again, err := config.LoadExperiment(t.Context(), filepath.Join(dir, "exp.yaml"), options)
	require.NoError(t, err)
	assert.Less(t, opened.Load()-once, once, "existence is still checked, content is not read")
	assert.True(t, first.View().Equal(again.View()))
	assert.Equal(t, noticed(first), noticed(again))
	assert.Len(t, noticed(again), 2)
}
