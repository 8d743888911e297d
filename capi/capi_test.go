package main

import (
	"errors"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/rankops"
)

// built is the folder that the library of these tests was built into. It is built once.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// TestMain reads every folder of the module. The tests run go in child processes, whose reading the
// test cache does not see; with this it knows that a change of any file of the module makes its
// results stale.
func TestMain(m *testing.M) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "output"}, entry.Name()) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// libprimus returns a folder with the library and its headers. Building them takes a minute where
// nothing is in the build cache.
func libprimus(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building libprimus takes long")
	}
	if runtime.GOOS != "linux" {
		t.Skip("libprimus was built on Linux only")
	}
	look(t, "cc")
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "libprimus"); built.err != nil {
			return
		}
		out, err := exec.CommandContext(t.Context(), "../scripts/lib.sh", built.dir).CombinedOutput()
		if err != nil {
			built.err = errors.New(string(out))
		}
	})
	require.NoError(t, built.err)
	return built.dir
}

// look returns the path of a program, or skips the test.
func look(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if home, _ := os.UserHomeDir(); err != nil {
		path, err = exec.LookPath(filepath.Join(home, ".cargo", "bin", program))
	}
	if err != nil {
		t.Skip("needs ", err)
	}
	return path
}

// run returns what a program prints.
func run(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// The tests of the Python package pass, with Debian's PyTorch where that is installed.
func TestPython(t *testing.T) {
	t.Parallel()
	dir := libprimus(t)
	python := primustest.Python(t)
	cmd := exec.CommandContext(t.Context(), python, "-W", "error::SyntaxWarning", "-m", "unittest", "discover", "-t", ".", "-s", "tests")
	cmd.Dir = "../python"
	cmd.Env = append(os.Environ(), "PRIMUS_LIBRARY="+filepath.Join(dir, "lib", "libprimus.so"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s: %s", python, out)
}

// The wheel has all that the package needs.
func TestWheel(t *testing.T) {
	t.Parallel()
	dir, out := libprimus(t), t.TempDir()
	python := primustest.Python(t)
	version := run(t, []string{"PRIMUS_LIBRARY=" + filepath.Join(dir, "lib", "libprimus.so"), "PYTHONPATH=../python", "PYTHONDONTWRITEBYTECODE=1"},
		python, "-c", "from primus_fl import _library; print(_library.load().primus_version().decode(), end='')")
	for described, want := range map[string]string{version: "silu: served by default.flagos", "v1.2.0": "is of version " + version + ", this package needs v1.2.0"} {
		wheel := strings.TrimSpace(run(t, nil, python, "../scripts/wheel.py", filepath.Join(dir, "lib", "libprimus.so"), described, out))
		assert.Regexp(t, `primus_fl-[^-]+-py3-none-manylinux_2_\d+_\w+\.whl$`, wheel)
		installed := t.TempDir()
		run(t, nil, python, "-m", "zipfile", "-e", wheel, installed)
		got := run(t, []string{"PYTHONPATH=" + installed}, python, "-c", "import primus_fl\ntry:\n    print(primus_fl.explain('silu'))\nexcept ImportError as e:\n    print(e)")
		assert.Contains(t, got, want)
	}
}

// compileC returns the command that compiles a program in C with the library of a folder.
func compileC(t *testing.T, dir, source, out string) []string {
	return []string{look(t, "cc"), "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", out, source,
		"-I" + dir + "/include", "-L" + dir + "/lib", "-lprimus", "-lm", "-pthread", "-Wl,-rpath," + dir + "/lib"}
}

// A process that reports its ops ends well when its signal stack is gone before, as after Python's
// faulthandler has ended.
func TestExitWithoutSignalStack(t *testing.T) {
	dir := libprimus(t)
	program := filepath.Join(t.TempDir(), "host")
	command := compileC(t, dir, "testdata/exit_without_signal_stack.c", program)
	run(t, nil, command[0], command[1:]...)
	collector, err := rankops.Listen("", rankops.Sink{})
	require.NoError(t, err)
	t.Cleanup(collector.Close)
	for range 3 {
		run(t, []string{rankops.Variable + "=" + collector.Socket(), "RANK=0"}, program)
	}
}

// The examples in other languages print the same.
func TestExamples(t *testing.T) {
	t.Parallel()
	compilers := map[string]func(t *testing.T, dir, source, out string) []string{
		"c": compileC,
		"cpp": func(t *testing.T, dir, source, out string) []string {
			return []string{look(t, "c++"), "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", out, source,
				"-I" + dir + "/include", "-L" + dir + "/lib", "-lprimus", "-Wl,-rpath," + dir + "/lib"}
		},
		"rs": func(t *testing.T, dir, source, out string) []string {
			return []string{look(t, "rustc"), "--edition", "2021", "-D", "warnings", "-o", out, source,
				"-L", dir + "/lib", "-l", "primus", "-C", "link-arg=-Wl,-rpath," + dir + "/lib"}
		},
	}
	for language, compiler := range compilers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := libprimus(t)
			program := filepath.Join(t.TempDir(), "rmsnorm")
			command := compiler(t, dir, "../examples/libprimus/rmsnorm."+language, program)
			run(t, nil, command[0], command[1:]...)
			out := run(t, []string{"TE_FL_PREFER=reference"}, program)
			assert.Contains(t, out, "0.5774 1.1547 2.3094\n1.3856 0.0000 2.0785\n")
			assert.Contains(t, out, `op "rmsnorm_fwd": argument "eps": given 0, want`)
			assert.Contains(t, out, "rmsnorm_fwd: served by reference.go\n")
			assert.Contains(t, run(t, nil, program), "rmsnorm_fwd: served by default.flagos\n")
		})
	}
}
