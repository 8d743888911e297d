package oracle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
)

// process is a PyTorch process, which answers one call at a time.
type process struct {
	in      *bufio.Writer
	out     *bufio.Reader
	version string
	ops     []string
}

// start runs PyTorch until the test ends. It skips the test when PyTorch is not installed.
func start(t *testing.T) *process {
	t.Helper()
	cmd := exec.Command(primustest.Python(t, "torch"), "-B", filepath.Join("testdata", "oracle"))
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1") // idle threads would spin beside other tests
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, stdin.Close())
		assert.NoError(t, cmd.Wait(), &stderr)
	})
	p := &process{in: bufio.NewWriter(stdin), out: bufio.NewReader(stdout)}
	var greeting struct {
		Version string   `json:"version"`
		Ops     []string `json:"ops"`
	}
	require.NoError(t, p.line(&greeting), &stderr)
	p.version, p.ops = greeting.Version, greeting.Ops
	return p
}

func (p *process) line(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("PyTorch ended: %w", err)
	}
	return json.Unmarshal(line, v)
}

// call lets PyTorch compute an op. The error wraps ErrUnsupported when it has no function for it.
func (p *process) call(op string, args any) error {
	r := newRequest(op, args)
	head, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(head, '\n')); err != nil {
		return err
	}
	for _, x := range r.operands {
		if err := writeValues(p.in, x); err != nil {
			return err
		}
	}
	if err := p.in.Flush(); err != nil {
		return err
	}
	var answer struct {
		Declined, Fault string
		Written         []int
	}
	if err := p.line(&answer); err != nil {
		return err
	}
	switch {
	case answer.Fault != "":
		return fmt.Errorf("PyTorch: %s", answer.Fault)
	case answer.Declined != "":
		return fmt.Errorf("PyTorch: %w: %s", opregistry.ErrUnsupported, answer.Declined)
	}
	for _, i := range answer.Written {
		if err := readValues(io.Reader(p.out), r.operands[i]); err != nil {
			return err
		}
	}
	return nil
}

// source returns the ops that PyTorch computes.
func (p *process) source(t *testing.T) opregistry.Source {
	t.Helper()
	src := opregistry.Source{Name: "torch", Version: p.version}
	byName := make(map[string]opregistry.Handle)
	for _, op := range ops.All() {
		byName[op.Name()] = op
	}
	for _, name := range p.ops {
		op, ok := byName[name]
		require.True(t, ok, "%q is not an op of the catalogue", name)
		src.Impls = append(src.Impls, opregistry.Impl{
			Op: op, ID: "reference.torch", Kind: opregistry.KindReference,
			Run: opregistry.Untyped(op, func(_ *opregistry.Exec, args any) error { return p.call(name, args) }),
		})
	}
	return src
}
