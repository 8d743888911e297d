package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/settings"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileReaders are command lines that read the file F of the working directory. Those
// that end with a star take an empty file or a directory for F.
var fileReaders = []string{
	"config validate F.yaml",
	"config show --config F.yaml",
	"config diff F.yaml F.json",
	"data inspect F",
	"data tokenize --tokenizer byte --append-eod=false -o made --input F.jsonl *",
	"data tokenize --tokenizer F -o made --input good.txt",
	"evaluate --checkpoint none --task F",
	"fleet policy apply F.yaml",
	"generate --checkpoint F --prompt a",
	"ops diff --policy F --policy F *",
	"ops explain --policy F *",
	"ops explain --tune F",
	"ops replay F *",
	"ops resolve rmsnorm_fwd --catalog F",
	"ops trace join F --trace-file made",
	"patches plan --run F",
	"plugins check ./F",
	"plugins report F",
	"policy check F *",
	"projection pipeline --schedules F.yaml --stages 2 --micro-batches 4",
	"projection pipeline --config F",
	"tokenizer encode --tokenizer good.json --file F *",
	"tokenizer inspect F",
	"tokenizer train --input F -o made *",
	"train pretrain --config F.yaml",
	"train pretrain --config good.yaml --launcher-file F --dry-run *",
	"train pretrain --config good.yaml --policy F --dry-run *",
	"train pretrain --config good.yaml --require-manifest F",
}

// Whatever is in the place of a file that a command reads, the command ends with an error that
// names it, without waiting and without reading for ever.
func TestHostileFilesOfCommands(t *testing.T) {
	primustest.Sequential(t, "it changes the working directory and measures what the process allocates")
	kinds := primustest.HostileFiles()
	primustest.Documented(t, "files of commands", len(kinds)*len(fileReaders))
	t.Chdir(t.TempDir())
	l := commandtest.NewLab(t)
	text, err := os.ReadFile(l.Exp)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("good.yaml", text, 0o600))
	require.NoError(t, os.WriteFile("good.txt", []byte(strings.Repeat("good text ", 100)), 0o600))
	got := commandtest.Run(t, "tokenizer", "train", "--input", "good.txt", "--vocab-size", "300", "-o", "good.json")
	require.Zero(t, got.Code, got.Stderr)
	for kind, put := range kinds {
		for _, line := range fileReaders {
			line, lenient := strings.CutSuffix(line, " *")
			if lenient && (kind == "an empty file" || kind == "a directory") {
				continue
			}
			t.Run(kind+"/"+line, func(t *testing.T) {
				for _, name := range []string{"F", "F.yaml", "F.json", "F.jsonl", "F.idx", "F.bin"} {
					require.NoError(t, os.RemoveAll(name))
					require.NoError(t, put(name))
				}
				require.NoError(t, os.RemoveAll("made"))
				var got commandtest.Outcome
				primustest.Cost(t, 128<<20, 3, func() { got = commandtest.Run(t, strings.Fields(line)...) })
				assert.NotZero(t, got.Code, got.Out)
				assert.Contains(t, got.Out+got.Stderr, "F")
				assert.NoFileExists(t, "made")
			})
		}
	}
}

// fileWriters are command lines that write to a directory that does not exist.
var fileWriters = []string{
	"benchmark gemm --output-file none/made.md",
	"benchmark gemm --plot none/made.png",
	"data tokenize --tokenizer byte --append-eod=false --input good.txt -o none/made",
	"ops bisect --config good.yaml --bad flagos --replay-file none/made",
	"ops trace --config good.yaml --trace-file none/made",
	"ops tune --config good.yaml --tuning-file none/made",
	"plugins build --with example.com/acme --primus v0.2.0 --output none/made",
	"plugins new --lang c acme --dir none/made",
	"projection pipeline --stages 2 --micro-batches 4 --picture none/made.svg",
	"tokenizer train --input good.txt -o none/made",
	"train pretrain --config good.yaml --trace-file none/made",
}

// What writes a file says before its work when the directory is missing, and what to do.
func TestFilesInDirectoriesThatAreMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	l := commandtest.NewLab(t)
	text, err := os.ReadFile(l.Exp)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("good.yaml", text, 0o600))
	require.NoError(t, os.WriteFile("good.txt", []byte(strings.Repeat("good text ", 100)), 0o600))
	for _, line := range fileWriters {
		got := commandtest.Run(t, strings.Fields(line)...)
		assert.NotZero(t, got.Code, line)
		assert.Contains(t, got.Stderr, "create a file in none: no such file or directory: make the directory, or choose another one", line)
	}
}

// A file with settings that cannot be one is an error of every command that takes settings.
func TestHostileFilesOfSettings(t *testing.T) {
	dir := t.TempDir()
	for kind, put := range primustest.HostileFiles() {
		path := filepath.Join(dir, strings.ReplaceAll(kind, " ", "-"))
		require.NoError(t, put(path))
		t.Setenv(settings.EnvFile, path)
		got := commandtest.Run(t, "config", "cli")
		if kind != "an empty file" {
			assert.NotZero(t, got.Code, kind)
			assert.Contains(t, got.Stderr, filepath.Base(path), kind)
		}
	}
}
