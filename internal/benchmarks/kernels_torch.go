package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/opbench"
)

//go:embed peers/attention.py
var torchProgram string

// torch is a PyTorch process, which is started at its first use.
type torch struct {
	threads int
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	absent  error
}

func (t *torch) start() error {
	if t.command != nil || t.absent != nil {
		return t.absent
	}
	var python string
	if python, t.absent = pythonOf(context.Background(), ""); t.absent == nil {
		t.absent = t.startWith(python)
	}
	return t.absent
}

func (t *torch) startWith(python string) error {
	cmd := exec.Command(python, "-c", torchProgram, strconv.Itoa(t.threads))
	// Memory is kept from one call to the next.
	cmd.Env = append(os.Environ(), append(pytorchSettings(t.threads), "OPENBLAS_NUM_THREADS="+strconv.Itoa(t.threads), "MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=17179869184")...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "ready") {
		in.Close()
		err := cmd.Wait()
		said := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return fmt.Errorf("%w: %s", err, said[len(said)-1])
	}
	t.command, t.in, t.out = cmd, in, lines
	return nil
}

// settle is how long PyTorch's idle threads keep spinning.
const settle = 20 * time.Millisecond

// attention returns the side that runs one forward and backward pass.
func (t *torch) attention(batch, heads, seq, dim int) *opbench.Side {
	if err := t.start(); err != nil {
		return &opbench.Side{Err: err}
	}
	return &opbench.Side{Calls: 1, Settle: settle, Time: func(int) (time.Duration, error) {
		if _, err := fmt.Fprintf(t.in, "%d %d %d %d\n", batch, heads, seq, dim); err != nil {
			return 0, fmt.Errorf("ask PyTorch: %w", err)
		}
		if !t.out.Scan() {
			return 0, errors.New("PyTorch ended without an answer")
		}
		took, err := strconv.ParseInt(t.out.Text(), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("PyTorch answered %q, want nanoseconds", t.out.Text())
		}
		return time.Duration(took), nil
	}}
}

// close ends the process.
func (t *torch) close() {
	if t.command != nil {
		t.in.Close()
		_ = t.command.Wait()
	}
}
