package durable_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/durable"
)

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	require.NoError(t, durable.MkdirAll(deep))
	require.NoError(t, durable.MkdirAll(deep))
	assert.DirExists(t, deep)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err := durable.MkdirAll(filepath.Join(file, "d"))
	require.ErrorIs(t, err, syscall.ENOTDIR)
	assert.ErrorContains(t, err, "a part of the path is a file")
}
