package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

var (
	fence    = regexp.MustCompile("(?ms)^```(\\w+)[^\n]*\n(.*?)^```$")
	lossLine = regexp.MustCompile(`(?m)^loss (\d\.\d+)$`)
)

// The programs of the tutorial run and print what it shows. Losses depend on the version of torch;
// those of all programs are equal but for rounding.
func TestOpsInPyTorch(t *testing.T) {
	t.Parallel()
	python := primustest.Python(t, "torch", "numpy")
	dir := libprimus(t)
	text, err := os.ReadFile("../docs/tutorials/ops-in-pytorch.md")
	require.NoError(t, err)
	source, err := filepath.Abs("../python")
	require.NoError(t, err)
	work, out, plain, ran := t.TempDir(), "", 0.0, 0
	python, err = exec.LookPath(python)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(work, "python3"), []byte("#!/bin/sh\nexec '"+python+"' \"$@\"\n"), 0o755))
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		switch language, body := block[1], block[2]; {
		case language == "python":
			name, _, _ := strings.Cut(strings.TrimPrefix(body, "# "), "\n")
			require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(body), 0o644))
		case language == "sh" && !strings.HasPrefix(body, "make wheel"):
			ran++
			cmd := exec.CommandContext(t.Context(), "sh", "-c", body)
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "PATH="+work+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONPATH="+source,
				"PRIMUS_LIBRARY="+filepath.Join(dir, "lib", "libprimus.so"), "PYTHONDONTWRITEBYTECODE=1")
			printed, _ := cmd.CombinedOutput() // the last one of some blocks fails, as shown
			out = string(printed)
		case language == "text":
			rest := out
			for line := range strings.Lines(body) {
				if strings.HasPrefix(line, "loss ") {
					parts := lossLine.FindStringSubmatch(rest)
					require.NotNil(t, parts, out)
					got, err := strconv.ParseFloat(parts[1], 64)
					require.NoError(t, err)
					if plain == 0 {
						plain = got
					}
					assert.InDelta(t, plain, got, 0.01)
					line = parts[0]
				}
				_, after, found := strings.Cut(rest, strings.TrimSpace(line))
				assert.True(t, found, "%q in this order in\n%s", line, out)
				rest = after
			}
		}
	}
	assert.Equal(t, 5, ran)
}
