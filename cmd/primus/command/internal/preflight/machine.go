package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Machine says where a system keeps its files and tools.
type Machine struct {
	Root   fs.FS                             // the root of the file system
	Getenv func(name string) string          // variables of the process
	Find   func(tool string) (string, error) // exec.LookPath
}

// This returns the machine that the process runs on.
func This() Machine {
	return Machine{Root: os.DirFS("/"), Getenv: os.Getenv, Find: exec.LookPath}
}

// read returns the trimmed text of a file, "" if there is none.
func (m Machine) read(name string) string {
	text, err := fs.ReadFile(m.Root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// list returns the names in a directory, none if it does not exist.
func (m Machine) list(dir string) []string {
	entries, err := fs.ReadDir(m.Root, dir)
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func (m Machine) has(tool string) bool {
	_, err := m.Find(tool)
	return err == nil
}

// maxOutput bounds what is kept of the output of a tool.
const maxOutput = 16 << 20

// run returns what a tool prints and how long it took.
func (m Machine) run(ctx context.Context, timeout time.Duration, tool string, args ...string) ([]byte, time.Duration, error) {
	path, err := m.Find(tool)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	var out limited
	var complaint limited
	cmd.Stdout, cmd.Stderr = &out, &complaint
	started := time.Now()
	err = cmd.Run()
	took := time.Since(started)
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, took, fmt.Errorf("%s did not answer within %v", tool, timeout)
	}
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return nil, took, fmt.Errorf("%s: %w %s", tool, err, text)
	}
	return out.Bytes(), took, nil
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
