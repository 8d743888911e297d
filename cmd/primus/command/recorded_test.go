package command_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unpack writes the files of a compressed archive below a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Skipf("recorded experiments are not here (set PRIMUS_SHARED): %v", err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		require.True(t, filepath.IsLocal(header.Name), header.Name)
		text, err := io.ReadAll(files)
		require.NoError(t, err)
		path := filepath.Join(dir, header.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
}

// Every experiment of Primus whose framework is compiled in can be planned.
func TestRecordedExperiments(t *testing.T) {
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	archive, err := filepath.Abs(filepath.Join(shared, "fixtures", "primus-config", "inputs.tar.gz"))
	require.NoError(t, err)
	dir := t.TempDir()
	unpack(t, archive, dir)
	t.Chdir(dir)
	planned := 0
	for _, framework := range []string{"megatron", "torchtitan", "maxtext", "megatron_bridge"} {
		for _, file := range files(t, filepath.Join("examples", framework)) {
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), "work_group:") {
				continue
			}
			got := primus(t, "patches", "plan", "--config", file, "--configs-dir", filepath.Join("primus", "configs"))
			if assert.Zero(t, got.code, "%s: %s", file, got.stderr) {
				assert.Contains(t, got.out, "framework "+framework+", version", file)
			}
			planned++
		}
	}
	assert.Greater(t, planned, 100)
	assert.NoDirExists(t, filepath.Join(dir, "data"))
}
