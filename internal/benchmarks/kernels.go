package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/vendors/openblas"
)

type kernelOptions struct {
	threads []int
	only    *regexp.Regexp
	format  string
	cpu     bool
	limits  limits
}

// kernels compares the kernels of impls/flagos with a peer that does the same work in the same run,
// and prints the ratios of their rates.
//
//	gemm       the products of a training step and squares, compared with OpenBLAS
//	memory     the memory-bound ops, compared with a loop that only moves as many bytes
//	gelu       GELU and its gradients, compared with such a loop: arithmetic is their bound
//	quant      rounding to fp8 and fp4 and back, compared with such a loop
//	moe        the router of a mixture of experts and the permutation of its rows, likewise
//	state      the cache of keys and values, and the gated delta rule, likewise
//	loss       an output layer with its cross entropy and gradients, compared with the calls apart
//	attention  causal attention forward and backward, compared with PyTorch
//	options    attention with dropout, windows, biases, ALiBi and sinks, compared with plain attention
//
// Both sides are called by turns until the time of a case is used up, and the fastest call of each
// counts: it is the one that other load on the machine has disturbed least. A ratio above 1 means
// that flagos is faster. On a machine that others use, -cpu counts the CPU time of one thread,
// which other load affects only through caches, memory and the frequency.
//
// Each number of threads is measured in its own process, because OpenBLAS takes its number from the
// environment when it is loaded.
func kernels(ctx context.Context, args []string, out, progress io.Writer) error {
	o := kernelOptions{threads: []int{1, 2}, only: regexp.MustCompile("")}
	flags := newFlags("kernels", progress)
	flags.Func("threads", "numbers of threads, such as 1,2 (the default)", func(s string) (err error) {
		o.threads, err = parseThreads(s)
		return err
	})
	flags.Func("only", "regular expression of the cases to measure, such as 'gemm|rmsnorm'", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	formatFlag(flags, &o.format)
	flags.BoolVar(&o.cpu, "cpu", false, "count CPU time, for a machine that others use; with -threads 1, without attention, whose peer is another process")
	flags.DurationVar(&o.limits.time, "time", time.Second, "time for each case")
	flags.IntVar(&o.limits.rounds, "rounds", 10, "rounds for each case at least")
	if err := parse(flags, args); err != nil {
		return err
	}
	if o.cpu && (len(o.threads) != 1 || o.threads[0] != 1 || o.only.MatchString("attention/")) {
		return fmt.Errorf("-cpu: given -threads %v and -only %q, want one thread and cases other than attention, such as -threads 1 -only '^options'", o.threads, o.only)
	}
	rows, err := o.measureAll(ctx, progress)
	if err != nil {
		return err
	}
	return write(out, o.format, rows, func(w io.Writer) error { return kernelTable(w, rows) })
}

func parseThreads(s string) ([]int, error) {
	var threads []int
	for field := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of threads", field)
		}
		threads = append(threads, n)
	}
	return threads, nil
}

// measureAll measures in this process for one number of threads, and otherwise in one process for
// each number.
func (o kernelOptions) measureAll(ctx context.Context, progress io.Writer) ([]kernelRow, error) {
	if len(o.threads) == 1 {
		return o.measure(ctx, o.threads[0], progress)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := []kernelRow{}
	for _, n := range o.threads {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, self, "kernels", "-threads", strconv.Itoa(n), "-only", o.only.String(), "-o", "json",
			"-time", o.limits.time.String(), "-rounds", strconv.Itoa(o.limits.rounds))
		cmd.Stdout, cmd.Stderr = &out, progress
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("measure with %d threads: %w", n, err)
		}
		var rows []kernelRow
		if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
			return nil, fmt.Errorf("read what was measured with %d threads: %w", n, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// measure runs the chosen cases of all groups.
func (o kernelOptions) measure(ctx context.Context, threads int, progress io.Writer) ([]kernelRow, error) {
	b, err := newBench(threads)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if o.cpu {
		if b.now, err = cpuTime(); err != nil {
			return nil, fmt.Errorf("-cpu: %w", err)
		}
	}
	rows := []kernelRow{}
	for _, c := range b.contests() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !o.only.MatchString(c.group + "/" + c.name) {
			continue
		}
		r, err := b.run(c, o.limits)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", c.group, c.name, err)
		}
		fmt.Fprintf(progress, "%-10s %-32s %d threads  %s\n", r.Group, r.Case, r.Threads, figure("%.2f", r.Ratio))
		rows = append(rows, r)
	}
	return rows, nil
}

// bench holds what the cases of one number of threads share.
type bench struct {
	threads int
	now     opbench.Clock
	memory  *cpu.Backend
	pool    *parallel.Pool
	exec    *opregistry.Exec
	snap    *opregistry.Snapshot // of flagos and OpenBLAS
	blas    *openblas.Library
	torch   *torch
}

func newBench(threads int) (*bench, error) {
	pool, blas, reg := parallel.New(threads), openblas.New(openblas.Options{Threads: threads}), opregistry.NewRegistry()
	for _, s := range []opregistry.Source{flagos.Source(), blas.Source()} {
		if err := reg.Register(s); err != nil {
			return nil, err
		}
	}
	return &bench{
		threads: threads, now: opbench.Elapsed(), memory: cpu.New(), pool: pool, exec: opregistry.NewExec(pool, 0), snap: reg.Snapshot(),
		blas: blas, torch: &torch{threads: threads},
	}, nil
}

func (b *bench) close() {
	b.torch.close()
	b.pool.Close()
	_ = b.memory.Close() // every case has returned its memory
}

// implOf returns the impl of an op with this id.
func implOf(snap *opregistry.Snapshot, op opregistry.Handle, id string) *opregistry.Entry {
	index, _ := snap.Index(op.Name())
	impls := snap.Impls(index)
	for i := range impls {
		if impls[i].ID == id {
			return &impls[i]
		}
	}
	panic(fmt.Sprintf("BUG: %s has no impl of %s", id, op.Name()))
}

// side returns a side that makes the call of a case on an impl.
func (b *bench) side(c opbench.Case, id string) *opbench.Side {
	return c.Side(b.now, b.snap, implOf(b.snap, c.Op, id), b.exec)
}

// The impls that are compared.
const (
	flagosID   = "default.flagos"
	openblasID = "vendor.openblas"
)
