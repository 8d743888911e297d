package ops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/tuning"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The file that ops tune writes serves train and explain on this machine, and is refused with a
// warning elsewhere.
func TestTuneFileIsUsed(t *testing.T) {
	l := commandtest.NewLab(t)
	file := filepath.Join(t.TempDir(), "tune.json")
	config := l.Args("micro_batch_size=2")[2:]
	made := commandtest.Run(t, append([]string{"ops", "tune", "--budget", "1s", "--tuning-file", file, "-o", "json"}, config...)...)
	require.Zero(t, made.Code, made.Stderr)
	var printed tuning.File
	require.NoError(t, json.Unmarshal([]byte(made.Out), &printed))
	require.NotEmpty(t, printed.Entries)
	read, err := tuning.Read(file)
	require.NoError(t, err)
	assert.Equal(t, printed, *read)
	for _, e := range read.Entries {
		assert.Equal(t, "default.flagos", e.Over, e.Op)
		assert.NotContains(t, e.Times, "reference.go")
		assert.GreaterOrEqual(t, e.Samples, 7)
	}

	explained := commandtest.Run(t, "ops", "explain", "generic_gemm", "--tune", file)
	require.Zero(t, explained.Code, explained.Stderr)
	assert.Contains(t, explained.Out, "order: tuned|flagos|vendor|reference (tuning file "+file+")\n")
	assert.Contains(t, explained.Out, "\ntuned: ")
	shown := commandtest.Run(t, "policy", "show", "--tune", file)
	assert.Regexp(t, `(?m)^prefer +tuned, then flagos +tuning file `, shown.Out)
	assert.Regexp(t, `(?m)^tuning +[0-9a-f]{16} +tuning file `, shown.Out)

	entry := &read.Entries[0]
	entry.Times["vendor.gone"], entry.Impl = entry.Times[entry.Impl]/100, "vendor.gone"
	require.NoError(t, read.Write(file))
	gone := commandtest.Run(t, "ops", "explain", entry.Op, "--tune", file)
	assert.Contains(t, gone.Stderr, "policy: tuning file "+file+" names impl \"vendor.gone\", which no loaded source registers")

	read.Machine.Threads++
	require.NoError(t, read.Write(file))
	got := l.Train("--tune", file, "train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "WARN  "+file+" was made on another machine or for another program, so its choices are not used: threads: made for")
}

func TestTuneAutoKeepsItsResult(t *testing.T) {
	l := commandtest.NewLab(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	got := l.Train("--tune", "auto", "train_iters=1")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "--tune auto: nothing is measured, because 2 % of the run is only")

	vendor := l.Train("--tune", "auto", "--prefer", "vendor", "train_iters=1", "exp_name=vendor")
	assert.Contains(t, vendor.Stderr, "WARN  --tune auto: nothing is measured, because flag --prefer prefers vendor: prefer tuned instead, or leave that out")

	made := commandtest.Run(t, append([]string{"ops", "tune", "--budget", "1s", "--tuning-file", filepath.Join(cache, "t.json")}, l.Args()[2:]...)...)
	require.Zero(t, made.Code, made.Stderr)
	assert.Contains(t, made.Out, "\nwritten to ")
}

// What took minutes to measure is printed even if the file cannot be written in the end.
func TestTunePrintsWithoutItsFile(t *testing.T) {
	l := commandtest.NewLab(t)
	file := filepath.Join(t.TempDir(), strings.Repeat("x", 250)) // longer with the end of a temporary name than a name may be
	got := commandtest.Run(t, append([]string{"ops", "tune", "--budget", "1ms", "--tuning-file", file}, l.Args()[2:]...)...)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Out, "generic_gemm")
	assert.NotContains(t, got.Out, "written to")
	assert.Contains(t, got.Stderr, "name too long")
}

func TestTuneRefuses(t *testing.T) {
	l := commandtest.NewLab(t)
	dir := t.TempDir()
	broken := filepath.Join(dir, "tune.json")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o600))
	for want, args := range map[string]string{
		"--tune: auto measures before training, and this command does not train":                      "ops tune --tune auto",
		"--tuning-file: given \"none/tune.json\": create a file in none: no such file or directory":   "ops tune --tuning-file none/tune.json",
		"--tuning-file: given \"" + dir + "\": " + dir + " is a directory, want the name of a file":   "ops tune --tuning-file " + dir,
		"--budget: given 0s, want a time above 0":                                                     "ops tune --budget 0s",
		"the policy leaves no choice":                                                                 "ops tune --deny-vendors *",
		"--tune: open none.json: no such file or directory; want the FILE of primus ops tune, or off": "ops tune --tune none.json",
		"tune.json: it is cut off; want a file that primus o":                                         "ops tune --tune " + broken,
	} {
		got := commandtest.Run(t, append(strings.Fields(args), l.Args()[2:]...)...)
		assert.NotZero(t, got.Code, args)
		assert.Contains(t, got.Stderr, want)
	}
}
