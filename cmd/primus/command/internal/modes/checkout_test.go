package modes_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accepted is the share of the command lines in the documentation of Primus that this program has
// to take.
const accepted = 0.9

var (
	codeBlock   = regexp.MustCompile("(?ms)^ *```[^\n]*\n(.*?)^ *```")
	continued   = regexp.MustCompile(`\\\n\s*`)
	primusLine  = regexp.MustCompile(`^(?:\$ )?(?:[A-Z_]+=\S+ +)*(?:srun .*?|bash )?\S*primus-cli +(.*)$`)
	placeholder = regexp.MustCompile("[<\\[│└✗✓`]|\\.\\.\\.|\\$\\(")
)

// TestLinesOfPrimus takes each command line in the documentation of a checkout of Primus, which
// PRIMUS_CHECKOUT names, as a dry run. Experiments that the checkout lacks are replaced.
func TestLinesOfPrimus(t *testing.T) {
	checkout := os.Getenv("PRIMUS_CHECKOUT")
	if checkout == "" {
		t.Skip("PRIMUS_CHECKOUT does not name a checkout of Primus")
	}
	t.Chdir(checkout)
	for name, value := range map[string]string{"SLURM_NNODES": "4", "NNODES": "2", "DATA_PATH": "/data", "EXP": "exp.yaml"} {
		t.Setenv(name, value)
	}
	var lines []string
	for _, root := range []string{"README.md", "docs", "docs_deprecated"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return nil // not every checkout has all of them
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
				for line := range strings.Lines(continued.ReplaceAllString(block[1], " ")) {
					if m := primusLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && !placeholder.MatchString(line) && !slices.Contains(lines, m[1]) {
						lines = append(lines, m[1])
					}
				}
			}
			return nil
		}))
	}
	require.Greater(t, len(lines), 100)
	taken := 0
	for _, line := range lines {
		command, _, _ := strings.Cut(strings.Split(strings.Split(line, " #")[0], " | ")[0], " 2>&1")
		words := commandtest.Words(t, os.ExpandEnv(command))
		separator := slices.Index(words, "--")
		for i := range words {
			if _, err := os.Stat(words[i]); i == 0 || words[i-1] != "--config" || err == nil {
				continue
			}
			words[i] = "examples/megatron/configs/MI300X/llama2_7B-BF16-pretrain.yaml"
			switch {
			case i < separator:
				words[i] = "runner/.primus.yaml"
			case slices.Contains(words, "posttrain"):
				words[i] = "examples/megatron_bridge/configs/MI355X/qwen3_32b_sft_posttrain.yaml"
			}
		}
		if !slices.Contains(words, "--help") && !slices.Contains(words, "--version") {
			words = append([]string{"--dry-run"}, words...)
		}
		if got := commandtest.Run(t, words...); got.Code == 0 {
			taken++
		} else {
			t.Logf("refused: primus-cli %s: %s", line, got.Stderr)
		}
	}
	t.Logf("%d of %d lines are taken", taken, len(lines))
	assert.Greater(t, float64(taken), accepted*float64(len(lines)))
}
