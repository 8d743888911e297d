package command_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The image of a release runs its program as a user without rights, to whom nothing belongs but the
// directory it works in. The same program and time give the same bytes.
func TestImageRunsWithoutRoot(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, []byte("a program"), 0o700))
	build := func(name string) string {
		file := filepath.Join(dir, name)
		out, err := exec.CommandContext(t.Context(), "bash", "../../../scripts/image.sh", program, "amd64", "v1.2.3", "1700000000", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return file
	}
	image, again := build("image.tar"), build("again.tar")
	first, err := os.ReadFile(image)
	require.NoError(t, err)
	second, err := os.ReadFile(again)
	require.NoError(t, err)
	assert.Equal(t, sha256.Sum256(first), sha256.Sum256(second))

	f, err := os.Open(image)
	require.NoError(t, err)
	defer f.Close()
	blobs := map[string][]byte{}
	each(t, f, func(h *tar.Header, content []byte) {
		if h.Typeflag != tar.TypeReg {
			return
		}
		blobs[h.Name] = content
		if name, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok {
			sum := sha256.Sum256(content)
			assert.Equal(t, name, hex.EncodeToString(sum[:]))
		}
	})
	type descriptor struct{ Digest string }
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		Architecture string
		Config       struct {
			User, WorkingDir string
			Entrypoint       []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob := func(d descriptor) []byte {
		content, ok := blobs["blobs/"+strings.ReplaceAll(d.Digest, ":", "/")]
		require.True(t, ok, d.Digest)
		return content
	}
	require.NoError(t, json.Unmarshal(blobs["index.json"], &index))
	require.Len(t, index.Manifests, 1)
	require.NoError(t, json.Unmarshal(blob(index.Manifests[0]), &manifest))
	require.NoError(t, json.Unmarshal(blob(manifest.Config), &config))
	require.Len(t, manifest.Layers, 1)
	assert.Equal(t, "amd64", config.Architecture)
	assert.Equal(t, "65532:65532", config.Config.User)
	assert.Equal(t, "/run", config.Config.WorkingDir)
	assert.Equal(t, []string{"/primus"}, config.Config.Entrypoint)

	unpacked, err := gzip.NewReader(strings.NewReader(string(blob(manifest.Layers[0]))))
	require.NoError(t, err)
	layer, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	sum := sha256.Sum256(layer)
	assert.Equal(t, []string{"sha256:" + hex.EncodeToString(sum[:])}, config.RootFS.DiffIDs)
	type entry struct {
		mode  int64
		owner int
	}
	got := map[string]entry{}
	each(t, strings.NewReader(string(layer)), func(h *tar.Header, _ []byte) {
		assert.Equal(t, h.Uid, h.Gid)
		got[h.Name] = entry{h.Mode & 0o7777, h.Uid}
	})
	assert.Equal(t, map[string]entry{"primus": {0o755, 0}, "run/": {0o755, 65532}, "tmp/": {0o1777, 0}}, got)
}

// The image trains on a root file system that it cannot write, without any capability.
func TestImageTrainsWithoutRights(t *testing.T) {
	primustest.Long(t, "it builds the program and starts a container")
	commandtest.StartPodman(t)
	dir := t.TempDir()
	work := filepath.Join(dir, "run")
	require.NoError(t, os.Mkdir(work, 0o755))
	require.NoError(t, os.Chmod(work, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(work, "text.txt"), []byte(strings.Repeat("one two three\n", 500)), 0o644))
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %q: %s", name, args, out)
		return string(out)
	}
	program, image := filepath.Join(dir, "primus"), filepath.Join(dir, "image.tar")
	run("go", "build", "-tags", "grpcnotrace,nopurego", "-o", program, "../../../cmd/primus")
	run("bash", "../../../scripts/image.sh", program, runtime.GOARCH, "v0", "1700000000", image)
	run("podman", "load", "--quiet", "--input", image)
	out := run("podman", "run", "--rm", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--network", "none", "--volume", work+":/run", "localhost/v0",
		"train", "text.txt", "train_iters=2", "--time", "5s")
	assert.Contains(t, out, "talk to it: primus chat ./output/local/local/text")
}

// each calls yield for each entry of an archive.
func each(t *testing.T, from io.Reader, yield func(h *tar.Header, content []byte)) {
	t.Helper()
	for in := tar.NewReader(from); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		content, err := io.ReadAll(in)
		require.NoError(t, err)
		yield(h, content)
	}
}
