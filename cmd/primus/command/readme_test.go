//go:build unix

package command_test

import (
	"bytes"
	"context"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadme runs the commands of the README as they are printed, in a copy of the tree and in
// their order; ARGS, which the README explains, makes the first of them short. What the README
// shows after a command has the form of what it prints; the figures are not compared. With
// -update, the first command trains as long as it says and its end goes into the README.
func TestReadme(t *testing.T) {
	primustest.Sequential(t, "it types the commands of a page")
	primustest.Long(t, "it types the commands of a page")
	for _, tool := range []string{"make", "git", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	shell := newReadmeShell(t, root)

	printed, seen := "", []string{}
	for _, b := range commandtest.Blocks(string(readme)) {
		text := strings.Join(b.Lines, "\n")
		switch b.Language {
		case "sh":
			printed = shell.run(text)
			seen = append(seen, b.Lines[0])
		case "text":
			if updating() && len(seen) == 1 {
				readme = bytes.Replace(readme, []byte(text), []byte(tour(t, printed)), 1)
				require.NoError(t, os.WriteFile(filepath.Join(root, "README.md"), readme, 0o644))
				continue
			}
			assert.Empty(t, missingForms(text, printed), "lines whose form the command does not print: go test ./cmd/primus/command -run TestReadme -update; it printed\n%s", printed)
		}
	}
	assert.GreaterOrEqual(t, len(seen), 4, "commands that the test has found")

	// The other text was trained in a directory of its own, on its words.
	config, err := os.ReadFile(filepath.Join(shell.dir, "output/local/local/book/config.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(config), "train_data_path: book.txt")
	for _, run := range []string{"book", "llama_2M-pretrain"} {
		for _, file := range []string{"loss.png", "metrics.jsonl", "train.log", "dispatch.json", "checkpoints"} {
			_, err := os.Stat(filepath.Join(shell.dir, "output/local/local", run, file))
			assert.NoError(t, err)
		}
	}
}

// updating reports whether golden files are to be rewritten.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// readmeShell runs commands in a copy of the tree.
type readmeShell struct {
	t   *testing.T
	dir string
	env []string
}

func newReadmeShell(t *testing.T, root string) *readmeShell {
	s := &readmeShell{t: t, dir: t.TempDir()}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "PRIMUS_") && !strings.HasPrefix(name, "TE") && name != "ARGS" {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, settings.EnvFile+"=none", "CI=true")
	if !updating() {
		s.env = append(s.env, "ARGS=train_iters=20 eval_interval=10 final_eval_windows=8")
	}
	skip := []string{".git", "bin", "output"}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case slices.Contains(skip, name) && d.IsDir():
			return fs.SkipDir
		case slices.Contains(skip, name):
			return nil
		case d.IsDir():
			return os.Mkdir(filepath.Join(s.dir, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(s.dir, name), content, info.Mode().Perm())
	}))
	return s
}

// run returns what commands print, which must succeed.
func (s *readmeShell) run(commands string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s\n%s", commands, out)
	return string(out)
}

// tour returns the lines of a run that the README shows: those of the first step, of one in the
// middle and of the last, the ops that took the longest, and the end.
func tour(t *testing.T, printed string) string {
	t.Helper()
	log, rest, found := strings.Cut(printed, "\n\nop ")
	require.True(t, found, printed)
	var steps, chosen []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, " INFO  step ") {
			steps = append(steps, strings.TrimRight(line, "\n"))
		}
	}
	require.NotEmpty(t, steps)
	chosen = append(chosen, steps[0])
	for _, line := range steps[len(steps)/2:] {
		if strings.Contains(line, "  valid ") {
			chosen = append(chosen, line)
			break
		}
	}
	chosen = append(chosen, steps[len(steps)-1], "")
	table, end, _ := strings.Cut("op "+rest, "\n\n")
	rows := strings.Split(table, "\n")
	const header, shown = 2, 6
	chosen = append(chosen, rows[:min(len(rows), header+shown)]...)
	chosen = append(chosen, "…", "")
	summary, text, _ := strings.Cut(strings.TrimSpace(end), "\n  ")
	written := strings.SplitN("  "+text, "\n", 4)
	return strings.Join(append(append(chosen, summary), append(written[:min(len(written), 3)], "  …")...), "\n")
}

// figure is a number with what belongs to it: a unit, a time of day, an exponent.
var figure = regexp.MustCompile(`\d[\d.:]*(e[+-]\d+)?(k|M|h|ms?|s)?([\d.]+(ms?|s))*\b|\d+`)

// form returns a line without its figures and the mark of those that are estimates, and of a line
// that begins with the name of an op only that and its impl.
func form(line string) string {
	words := strings.Fields(line)
	if len(words) > 2 && strings.Contains(words[1], ".") && !strings.Contains(line, "  step ") && strings.Contains(words[0], "_") {
		return strings.Join(words[:2], " ")
	}
	line = regexp.MustCompile(`─+`).ReplaceAllString(line, "─")
	return strings.Join(strings.Fields(strings.ReplaceAll(figure.ReplaceAllString(line, "0"), "~", "")), " ")
}

// missingForms returns the lines of a document that have the form of no line that was printed. What
// a model writes, after the last heading, has none.
func missingForms(shown, printed string) []string {
	forms := map[string]bool{"": true}
	printed, _, _ = strings.Cut(printed, "\ngenerated text after ")
	shown, _, _ = strings.Cut(shown, "\ngenerated text after ")
	for line := range strings.Lines(printed) {
		forms[form(line)] = true
	}
	var missing []string
	for line := range strings.Lines(shown) {
		if f := form(line); f != "…" && !forms[f] {
			missing = append(missing, f)
		}
	}
	return missing
}
