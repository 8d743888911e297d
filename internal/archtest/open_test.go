package archtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// openers lists functions that open whatever a path leads to: they wait for pipes, read devices
// without end, and write where links lead.
var openers = map[string][]string{
	"archive/zip": {"OpenReader"},
	"debug/elf":   {"Open"},
	"debug/macho": {"Open"},
	"debug/pe":    {"Open"},
	"io/ioutil":   {"ReadFile", "WriteFile"},
	"os":          {"CopyFS", "Create", "DirFS", "Open", "OpenFile", "ReadFile", "Truncate", "WriteFile"},
}

const (
	ofKernel  = "files of the kernel"
	ofModules = "sources of Go modules, which are compiled next"
	newFile   = "new files, which no link stands for"
)

// direct lists files that open others without internal/durable, with what those are.
var direct = map[string]string{
	"cmd/primus/command/internal/modes/run.go":         "a log that the command line names, also a terminal or a pipe",
	"cmd/primus/command/internal/preflight/machine.go": ofKernel,
	"cmd/primus/command/man.go":                        "pages in a directory that the command line names",
	"device/cpu/backend.go":                            ofKernel,
	"internal/buildinfo/build.go":                      "this program",
	"internal/isa/cache.go":                            ofKernel,
	"internal/launch/elastic/errorfile.go":             newFile,
	"internal/launch/pipe_unix.go":                     "a pipe that it has made",
	"internal/plugin/check/leaks.go":                   ofKernel,
	"internal/plugin/check/state_linux.go":             ofKernel,
	"internal/plugin/sandbox/keeper_linux.go":          ofKernel,
	"internal/plugin/scaffold/module.go":               ofModules,
	"internal/plugin/scaffold/scaffold.go":             ofModules,
	"internal/plugin/scaffold/source.go":               ofModules,
	"internal/procgroup/descendants_linux.go":          ofKernel,
	"internal/procgroup/marked_linux.go":               ofKernel,
	"internal/rundir/tensorboard/writer.go":            newFile,
	"internal/rundir/wandb/writer.go":                  newFile,
	"internal/secret/secretfile.go":                    "a secret, which a pipe of the shell keeps off the disk",
	"internal/sysmem/limit_linux.go":                   ofKernel,
	"internal/sysmem/peak.go":                          ofKernel,
	"internal/tuning/file.go":                          ofKernel,
}

// checkOpeners returns the shipped files that open others without internal/durable, in order.
func checkOpeners(files []source, direct map[string]string) []string {
	calls := map[string]string{}
	ships := shipped(files)
	for _, s := range files {
		if !s.isTest() && !s.isKit() && ships[s.dir] && s.dir != "internal/durable" {
			calls[s.where()] = s.decodes(openers)
		}
	}
	var faults []string
	for _, file := range slices.Sorted(maps.Keys(calls)) {
		if _, listed := direct[file]; calls[file] != "" && !listed {
			faults = append(faults, fmt.Sprintf("%s: want internal/durable, which opens neither pipes nor devices, or the file in the list of those that need no more", calls[file]))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(direct)) {
		if calls[file] == "" {
			faults = append(faults, file+" is listed and opens nothing itself: remove it")
		}
	}
	return faults
}

// What is opened by a name from outside is a regular file, and opening it does not block.
func TestFilesAreOpenedByDurable(t *testing.T) {
	t.Parallel()
	for _, fault := range checkOpeners(tree(t), direct) {
		t.Error(fault)
	}
}

func TestFilesOpenedDirectlyAreFound(t *testing.T) {
	t.Parallel()
	program := parse(t, "cmd/primus/main.go", "package main\nimport _ \""+module+"/internal/a\"")
	opener := parse(t, "internal/a/a.go", "package a\nimport \"os\"\nvar _, _ = os.Open(\"a\")")
	library := parse(t, "internal/a/a.go", "package a\nimport \"debug/elf\"\nvar _, _ = elf.Open(\"a\")")
	other := parse(t, "internal/a/a.go", "package a\nimport \"os\"\nvar _, _ = os.Stat(\"a\")")
	listed := map[string]string{"internal/a/a.go": "nothing"}
	const want = ": want internal/durable, which opens neither pipes nor devices, or the file in the list of those that need no more"
	assert.Equal(t, []string{"internal/a/a.go:3: os.Open" + want}, checkOpeners([]source{program, opener}, nil))
	assert.Equal(t, []string{"internal/a/a.go:3: elf.Open" + want}, checkOpeners([]source{program, library}, nil))
	assert.Empty(t, checkOpeners([]source{program, other}, nil))
	assert.Empty(t, checkOpeners([]source{opener}, nil), "it is in no program")
	assert.Empty(t, checkOpeners([]source{program, opener}, listed))
	assert.Equal(t, []string{"internal/a/a.go is listed and opens nothing itself: remove it"}, checkOpeners([]source{program, other}, listed))
}
