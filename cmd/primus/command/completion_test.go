package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := commandtest.Run(t, "completion", shell)
		assert.Zero(t, got.Code)
		assert.Contains(t, got.Out, "__complete", shell)
	}
}

// TestCompletionInBash sources the script and asks for completions as the shell does.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!%s\nexec env %s=primus %q \"$@\"\n", bash, commandtest.RoleEnv, os.Args[0])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "primus"), []byte(script), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "completion.bash"), []byte(commandtest.Run(t, "completion", "bash").Out), 0o644))

	// The function that the package bash-completion brings, as far as the script needs it, and the
	// call that the shell makes.
	const harness = `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
__ltrim_colon_completions() { :; }
compopt() { :; }
source "$1/completion.bash"
PATH=$1:$PATH
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
__start_primus
printf '%s\n' "${COMPREPLY[@]}"
`
	l := commandtest.NewLab(t)
	exp := func(words ...string) []string { return append([]string{"train", "--config", l.Exp}, words...) }
	tests := []struct {
		words []string
		want  string // the lines that bash would offer; it puts what stands before a sign that breaks words back itself
	}{
		{exp("train_it"), "train_iters="},
		{exp("--train_it"), "--train_iters="},
		{exp("lr=1e-3", "exp_na"), "exp_name="},
		{exp("z_loss"), "z_loss_coeff="},
		{exp("normalization=L"), "LayerNorm"},
		{exp("normalization="), "LayerNorm\nRMSNorm"},
		{exp("--activation_func=s"), "swiglu"},
		{exp("lr_decay_style=c"), "constant\ncosine"},
		{exp("add_bias_linear="), "false\ntrue"},
		{exp("te_fl_prefer=v"), "vendor"},
		{exp("lr="), ""},
		{exp("nonsense="), ""},
		{[]string{"train", "--config", l.Exp + "x", "train_it"}, ""},
		{[]string{"train", "train_it"}, ""},
		{[]string{"config", "show", "--config", l.Exp, "train_it"}, "train_iters="},
		{[]string{"patches", "plan", "--config", l.Exp, "train_it"}, "train_iters="},
		{[]string{"train", "--prefer", "v"}, "vendor"},
		{[]string{"train", "--prefer=r"}, "reference"},
		{exp("--deny-vendors", "o"), "onednn\nopenblas\nopencl\nopenmpi"},
		{[]string{"ops", "list", "--prefer", "f"}, "flagos"},
		{[]string{"ops", "explain", "--allow-vendors", "g"}, "gonum"},
		{[]string{"ops", "explain", "--allow-vendors", "gonum,onednn,openb"}, "gonum\\,onednn\\,openblas"}, // quoted by bash
		{[]string{"ops", "explain", "--per-op", "generic_g"}, "generic_gemm="},
		{[]string{"ops", "explain", "--per-op", "generic_gemm=v"}, "vendor\nvendor:clblast\nvendor:gonum\nvendor:mpi_abi\nvendor:mpich\nvendor:onednn\nvendor:openblas\nvendor:opencl\nvendor:openmpi"},
		{[]string{"ops", "explain", "--per-op", "generic_gemm=impl:d"}, "default.flagos"},
		{[]string{"ops", "diff", "--to-prefer", "v"}, "vendor"},
		{[]string{"tr"}, "train"},
		{[]string{"ops", "li"}, "list"},
		{[]string{"ops", "list", "generic"}, "generic_gemm"},
		{[]string{"ops", "list", "-o", "j"}, "json"},
		{[]string{"train", "pre"}, "pretrain"},
		{[]string{"train", "--metrics-a"}, "--metrics-addr"},
		{[]string{"config", "v"}, "validate"},
		{[]string{"config", "show", "-o", "t"}, "toml"},
		{[]string{"config", "show", "--orig"}, "--origin"},
		{[]string{"completion", "z"}, "zsh"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.words, " "), func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--norc", "-c", harness, "bash", dir, "primus"}, tt.words...)
			out, err := exec.CommandContext(t.Context(), bash, args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			offered := strings.Fields(string(out))
			slices.Sort(offered)
			assert.Equal(t, tt.want, strings.Join(offered, "\n"))
		})
	}
}
