package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// embedder is a program of another module.
const embedder = `package main

import (
	"fmt"
	"log"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

func main() {
	registry := opregistry.NewRegistry()
	if err := registry.Register(flagos.Source()); err != nil {
		log.Fatal(err)
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{})
	defer manager.Close()
	x, err := tensor.FromSlice([]float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	add, err := opmanager.Bind(manager, norm.ResidualAdd)
	if err != nil {
		log.Fatal(err)
	}
	if err := add.Call(norm.ResidualAddArgs{A: x, B: x, Output: x}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tensor.Data[float32](x))
}
`

// TestGetByAnotherModule publishes the working tree as a version in a module proxy of files, and
// builds a program of a module that requires it. Other modules come from the module cache.
func TestGetByAnotherModule(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles the dispatch and its kernels anew")
	}
	root, path, err := moduleRoot()
	require.NoError(t, err)
	cache, err := goCommand(root, "env", "GOMODCACHE")
	require.NoError(t, err)
	downloads := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	if _, err := os.Stat(downloads); err != nil {
		t.Skip("the module cache has no downloads: ", err)
	}
	proxy, work := t.TempDir(), t.TempDir()
	version := module.Version{Path: path, Version: "v0.0.1-test"}
	publish(t, root, filepath.Join(proxy, filepath.FromSlash(path), "@v"), version)

	env := append(os.Environ(),
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(downloads)+",off", "GONOPROXY=none", "GOSUMDB=off",
		"GOMODCACHE="+t.TempDir(), "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOWORK=off", "CGO_ENABLED=0")
	run := func(name string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env = work, env
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "module lookup disabled by GOPROXY=off") {
			t.Skipf("the module cache lacks a download: %s", out)
		}
		require.NoError(t, err, "%s %v: %s", name, args, out)
		return string(out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(work, "main.go"), []byte(embedder), 0o600))
	run("go", "mod", "init", "example.org/embedder")
	run("go", "get", version.Path+"@"+version.Version)
	run("go", "build", "-o", "embedder", ".")
	require.Equal(t, "[2 4 6]\n", run(filepath.Join(work, "embedder")))
}

// publish writes the files of the working tree that git does not ignore into the folder of a proxy.
func publish(t *testing.T, root, dir string, version module.Version) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("the tree is not a checkout of git: ", err)
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, treeFile{root, name})
		}
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	write := func(suffix string, content []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, version.Version+suffix), content, 0o600))
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	write(".mod", mod)
	write(".info", fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, version.Version))
	archive, err := os.Create(filepath.Join(dir, version.Version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.Create(archive, version, withoutModules(files)))
	require.NoError(t, archive.Close())
}

// withoutModules leaves out the files of modules nested in the tree.
func withoutModules(files []zip.File) []zip.File {
	nested := map[string]bool{}
	for _, f := range files {
		if dir, ok := strings.CutSuffix(f.Path(), "/go.mod"); ok {
			nested[dir] = true
		}
	}
	var own []zip.File
	for _, f := range files {
		inside := false
		for dir := f.Path(); dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
			inside = inside || nested[dir]
		}
		if !inside {
			own = append(own, f)
		}
	}
	return own
}

// treeFile is a file of the working tree.
type treeFile struct{ root, name string }

func (f treeFile) Path() string { return f.name }

func (f treeFile) Lstat() (os.FileInfo, error) { return os.Lstat(filepath.Join(f.root, f.name)) }

func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }
