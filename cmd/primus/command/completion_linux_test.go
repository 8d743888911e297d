package command_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bashCompletion is the package that the script for bash builds on.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// TestCompletionAtAPrompt types at the prompt of a real bash: what Tab puts on the line is what the
// program gets.
func TestCompletionAtAPrompt(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	if _, err := os.Stat(bashCompletion); err != nil {
		t.Skipf("the package bash-completion is not here: %v", err)
	}
	l := commandtest.NewLab(t)
	dir := t.TempDir()
	// A command that is complete only says what it was given.
	script := fmt.Sprintf("#!%s\n[[ $1 == __complete ]] && exec env %s=primus %q \"$@\"\nprintf 'given <%%s>\\n' \"$*\"\n", bash, commandtest.RoleEnv, os.Args[0])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "primus"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "completion.bash"), []byte(commandtest.Run(t, "completion", "bash").Out), 0o644))
	rc := fmt.Sprintf("PS1='$ '\nbind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\nsource %s\nsource %s/completion.bash\nPATH=%s:$PATH\necho ready\n",
		bashCompletion, dir, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rc"), []byte(rc), 0o644))

	person, program := commandtest.OpenTerminal(t)
	cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--rcfile", filepath.Join(dir, "rc"), "-i")
	cmd.Env = append(os.Environ(), "TERM=dumb", "HOME="+dir, "HISTFILE=/dev/null")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, program.Close())
	screen := &primustest.Buffer{}
	go func() { _, _ = io.Copy(screen, person) }()
	shows := func(text string) func() bool {
		return func() bool { return strings.Contains(screen.String(), text) }
	}
	require.Eventually(t, shows("ready"), 2*time.Minute, 10*time.Millisecond)

	for _, tt := range []struct{ typed, given string }{
		{"primus train --config exp.yaml normali\tL\t", "train --config exp.yaml normalization=LayerNorm"},
		{"primus train --config exp.yaml --train_it\t7", "train --config exp.yaml --train_iters=7"},
		{"primus train --prefer v\t", "train --prefer vendor"},
		{"primus ops explain --per-op=generic_ge\timpl:d\t", "ops explain --per-op=generic_gemm=impl:default.flagos"},
		{"primus ops explain --allow-vendors=gonum,oned\t", "ops explain --allow-vendors=gonum,onednn"},
	} {
		_, err := person.WriteString(strings.ReplaceAll(tt.typed, "exp.yaml", l.Exp) + "\n")
		require.NoError(t, err)
		given := "given <" + strings.ReplaceAll(tt.given, "exp.yaml", l.Exp) + ">"
		assert.Eventually(t, shows(given), 2*time.Minute, 10*time.Millisecond, "%s\n%s", given, screen)
	}
	_, err = person.WriteString("exit\n")
	require.NoError(t, err)
	_ = cmd.Wait()
}
