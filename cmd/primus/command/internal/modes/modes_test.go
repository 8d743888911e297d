package modes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const experiment = "llama_2M-pretrain" // comes with the program

// Each line is one of the launcher of Primus, with a part of what it comes to.
func TestDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HF_TOKEN", "")
	t.Setenv("SLURM_JOB_ID", "")
	require.NoError(t, os.Unsetenv("SLURM_JOB_ID")) // until the test ends
	for line, want := range map[string][]string{
		"direct -- train pretrain --config " + experiment:                                              {"dry run: none of this is done", experiment},
		"direct --single train pretrain --config " + experiment + " --train_iters 7":                   {"7"},
		"direct -- --debug benchmark gemm --M 64":                                                      {"would run: primus benchmark gemm --M 64\n"},
		"--debug direct --numa -- ops list":                                                            {"would run: primus ops list\n"},
		"slurm srun -N 2 -p gpu -- train pretrain --config " + experiment:                              {"launcher slurm,container: none", "srun --nodes=2", "--partition=gpu", "--launcher=container,direct"},
		"slurm -N 2 --time=8:00:00 -- direct -- train pretrain --config " + experiment:                 {"launcher slurm: none", "--time=8:00:00", "--launcher=direct"},
		"slurm sbatch -N8 -o train_%j.log --exclusive -- train --config " + experiment:                 {"#SBATCH --nodes=8", "#SBATCH --output=train_%j.log", "#SBATCH --exclusive\n"},
		"slurm srun -N 4 -- direct -- preflight --quick":                                               {"srun --nodes=4 --ntasks-per-node=1", " direct -- preflight --quick\n"},
		"slurm srun -N 2 -- container --image one:1 -- node_smoke --tier2-perf":                        {" container --image one:1 -- node_smoke --tier2-perf\n"},
		"slurm srun -N 2 -- --image one:1 preflight --host":                                            {" container --image one:1 preflight --host\n"},
		"container --image one:1 --memory 8G --volume /d:/d --env A=b -- ops list":                     {"run --rm", "--memory=8G", "--volume=/d:/d", "--env=A ", " one:1 ", " direct ops list\n"},
		"container --image one:1 --env HF_TOKEN=hf_secret -- -- train pretrain --config " + experiment: {"launcher container: none", "--env=HF_TOKEN"},
		"container -- --env HF_TOKEN=hf_secret --log_file /data/run.log -- ops list":                   {" direct --env HF_TOKEN --log_file /data/run.log -- ops list\n"},
		"direct -- --help": {"would run: primus --help\n"},
	} {
		got := commandtest.Run(t, append([]string{"--dry-run"}, strings.Fields(line)...)...)
		require.Zero(t, got.Code, "%s: %s", line, got.Stderr)
		for _, part := range want {
			assert.Contains(t, got.Out, part, line)
		}
		assert.NotContains(t, got.Out+got.Stderr, "hf_secret", line)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left, "a dry run writes nothing")
}

func TestWrongLines(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"direct":                             "",
		"direct --":                          "given no command, want one after --",
		"direct --fast -- ops list":          "direct: unknown option --fast",
		"direct --script debug.py -- ops":    "--script: given debug.py, but primus runs its own commands only",
		"direct --env":                       "--env: given nothing",
		"direct -- nothing":                  `unknown command "nothing"`,
		"direct -- ops lst":                  `unknown command "lst"`,
		"direct -- benchmark gemm --m 3":     "unknown flag --m",
		"direct -- slurm -N 2 -- ops list":   "given mode slurm after --, want a command",
		"slurm sometimes -N 2 -- ops list":   `slurm: given "sometimes", want options of srun`,
		"slurm -Z 2 -- ops list":             "slurm: unknown option -Z",
		"slurm srun -N two -- direct -- ops": "want a whole number",
		"slurm srun -N 2 --":                 "given no command",
		"container --config -- ops list":     "no such file",
		"deps sync":                          "primus downloads no framework",
		"direct --env none.sh -- ops list":   "want NAME=VALUE, or a file of shell assignments",
		"direct --patch none.sh -- ops list": "--patch: ",
		"direct --log_file x/ -- ops list":   "--log_file: ",
		"slurm -- --patch p.sh -- train":     "--patch: given together with train in mode slurm",
	} {
		got := commandtest.Run(t, strings.Fields(line)...)
		if want == "" {
			assert.Contains(t, got.Out, "Usage:", line)
			continue
		}
		assert.NotZero(t, got.Code, line)
		assert.Contains(t, got.Stderr, want, line)
	}
}

// Variables, patch scripts and their lines come before the command, in this order.
func TestDirect(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for file, text := range map[string]string{
		"vars.sh":  "export FROM_FILE=1\nBOTH=file\n",
		"patch.sh": "echo env.FROM_PATCH=2; echo extra.repeat=3; echo extra.shape=40x8x8; echo seen $BOTH $FROM_FILE >&2\n",
		"skip.sh":  "exit 2\n",
		"after.sh": "echo then $FROM_PATCH $PRIMUS_LOG_LEVEL >&2\n",
		"fail.sh":  "exit 7\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, name := range []string{"FROM_FILE", "FROM_PATCH", "BOTH", "PRIMUS_LOG_LEVEL"} {
		t.Setenv(name, "")
	}
	got := commandtest.Run(t, "direct", "--env", "BOTH=line", "--env", "vars.sh", "--patch", "skip.sh", "--patch=patch.sh", "--patch", "after.sh", "--debug", "--log_file", "logs/all.txt",
		"--", "benchmark", "gemm", "--layout", "dgrad", "--impl", "default.flagos")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "40x8x8 dgrad")
	assert.Contains(t, got.Stderr, "seen line 1\n")
	assert.Contains(t, got.Stderr, "then 2 DEBUG\n")
	for _, name := range []string{"FROM_FILE", "FROM_PATCH", "BOTH", "PRIMUS_LOG_LEVEL"} {
		assert.Empty(t, os.Getenv(name), "a program that embeds the command keeps its variables")
	}
	log, err := os.ReadFile(filepath.Join("logs", "all.txt"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "seen line 1\n")
	assert.Contains(t, string(log), "40x8x8 dgrad")

	got = commandtest.Run(t, "direct", "--patch", "fail.sh", "ops", "list")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "--patch fail.sh: exit status 7; want exit code 0, or 2 where it is not needed")
	assert.Empty(t, got.Out)

	got = commandtest.Run(t, "direct", "--silent", "--", "ops", "list")
	assert.Zero(t, got.Code)
	assert.Empty(t, got.Out+got.Stderr)
	got = commandtest.Run(t, "direct", "--config", "settings.yaml", "--single", "--", "ops", "list")
	assert.Zero(t, got.Code)
	assert.Contains(t, got.Stderr, "warning: --config settings.yaml has no effect: ops has no launcher\n")
	assert.Contains(t, got.Stderr, "warning: --single has no effect: ops starts no Python framework\n")
	got = commandtest.Run(t, "direct", "--silent", "--", "ops", "explain", "nothing")
	assert.NotZero(t, got.Code)
	assert.Contains(t, got.Stderr, "nothing")
}
