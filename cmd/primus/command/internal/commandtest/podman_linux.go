package commandtest

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// StartPodman makes an image with empty directories for the length of a test, and points podman at
// it. It returns the options of the launcher for containers of it, which see the libraries and
// programs of this machine. Where podman cannot run a container the test skips.
func StartPodman(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts containers")
	}
	Tools(t, "podman", "runc")
	dir, err := os.MkdirTemp("", "podman") // sockets have short names
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = exec.Command("podman", "unshare", "rm", "-rf", dir).Run() // of a user other than root
		_ = os.RemoveAll(dir)
	})
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	t.Setenv("CONTAINERS_CONF", write("containers.conf", `[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=2048:2048"]
log_driver = "none"
`))
	t.Setenv("CONTAINERS_STORAGE_CONF", write("storage.conf", "[storage]\ndriver = \"vfs\"\ngraphroot = \""+dir+"/images\"\nrunroot = \""+dir+"/run\"\n"))
	var image bytes.Buffer
	archive := tar.NewWriter(&image)
	for _, name := range []string{"bin", "etc", "lib", "lib64", "tmp", "usr", "proc", "sys", "dev"} {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o1777}))
	}
	require.NoError(t, archive.Close())
	const name = "localhost/primus-test:1"
	importing := exec.Command("podman", "import", "-", name)
	importing.Stdin = &image
	if out, err := importing.CombinedOutput(); err != nil {
		t.Skipf("podman cannot make an image: %v\n%s", err, out)
	}
	options := []string{
		"container.runtime=podman", "container.image=" + name, "container.network=none", "container.ulimit=['nofile=1024:1024', 'nproc=2048:2048']",
		"container.group-add=false", "container.cap-add=[]",
	}
	mounts := []string{}
	for _, path := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"} {
		if _, err := os.Stat(path); err == nil {
			options, mounts = append(options, "container.volume="+path+":"+path+":ro"), append(mounts, "--volume="+path+":"+path+":ro")
		}
	}
	try := append([]string{"run", "--rm", "--network=none"}, mounts...)
	if out, err := exec.Command("podman", append(try, name, "/bin/true")...).CombinedOutput(); err != nil {
		t.Skipf("podman cannot run a container: %v\n%s", err, strings.TrimSpace(string(out)))
	}
	return options
}
