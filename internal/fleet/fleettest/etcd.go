// Package fleettest runs etcd for tests and makes it fail.
//
// # Concepts
//
// Start runs the etcd of the machine with data of its own, or skips the test where there is none.
// Kill and Restart let the server fail; a Proxy lets the network fail.
//
// # Concurrency
//
// An Etcd is for the goroutine of the test. A Proxy is safe for concurrent use.
package fleettest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Etcd is an etcd server of one member.
type Etcd struct {
	// Address is the HOST:PORT of clients. It stays the same for the life of the test.
	Address string

	t       testing.TB
	path    string
	peer    string
	health  string
	data    string
	args    []string
	process *exec.Cmd
	log     *bytes.Buffer
}

// Start runs etcd, with additional arguments, until the end of the test.
func Start(t testing.TB, args ...string) *Etcd {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("no etcd on this machine; scripts/install-test-deps.sh installs it")
	}
	e := &Etcd{t: t, path: path, Address: freeAddress(t), peer: freeAddress(t), health: freeAddress(t), data: filepath.Join(t.TempDir(), "etcd"), args: args}
	t.Cleanup(e.Kill)
	e.Restart()
	return e
}

// Restart starts etcd again with its data and waits until it is healthy: data of an etcd that is
// killed before it had a leader cannot be started again.
func (e *Etcd) Restart() {
	e.t.Helper()
	scheme := "http"
	if len(e.args) > 0 {
		scheme = "https"
	}
	client, peer := scheme+"://"+e.Address, "http://"+e.peer
	e.log = &bytes.Buffer{}
	e.process = exec.Command(e.path, append([]string{
		"--name", "one", "--data-dir", e.data, "--unsafe-no-fsync", "--log-level", "error",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one=" + peer,
		"--listen-metrics-urls", "http://" + e.health,
		"--heartbeat-interval", "50", "--election-timeout", "500",
	}, e.args...)...)
	e.process.Stdout, e.process.Stderr = e.log, e.log
	require.NoError(e.t, e.process.Start())
	for range 1200 {
		if e.healthy() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	e.Kill()
	require.Fail(e.t, "etcd is not healthy", "%s", e.log)
}

func (e *Etcd) healthy() bool {
	answer, err := http.Get("http://" + e.health + "/health")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && bytes.Contains(text, []byte(`"health":"true"`))
}

// Kill ends etcd at once.
func (e *Etcd) Kill() {
	if e.process == nil {
		return
	}
	_ = e.process.Process.Kill()
	_ = e.process.Wait()
	e.process = nil
}

// Forget kills etcd and removes its data, so that Restart starts a new cluster.
func (e *Etcd) Forget() {
	e.t.Helper()
	e.Kill()
	e.data = filepath.Join(e.t.TempDir(), fmt.Sprintf("etcd-%d", time.Now().UnixNano()))
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
