//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
)

// drill is one way to attack a run.
type drill struct {
	name    string
	attack  string // what the drill does, for the table
	promise string // what must hold
	// tries is how often try is called, short how often with -short: not at all where only the whole
	// attack says something.
	tries, short int
	// sweeps marks a drill of which one try attacks at every place with -sweep.
	sweeps bool
	// try attacks once, in its own lab. It returns the number of attacks, and an error for a broken
	// promise. An error that wraps errSkip says that this machine cannot make the attack.
	try func(ctx context.Context, l *lab, random *rand.Rand) (attacks int, err error)
}

// errSkip marks attacks that this machine cannot make.
var errSkip = errors.New("skipped")

// drills are all drills, in the order of the table.
var drills = []drill{
	{name: "kill", tries: 20, short: 2, try: kill,
		attack:  "SIGKILL at random moments of training, saving, evaluation and policy reload",
		promise: "the run goes on; losses and weights are those of an undisturbed run, bit for bit"},
	{name: "signal", tries: 20, short: 3, try: interrupt,
		attack:  "SIGINT, SIGTERM or SIGHUP at start, in training, saving, evaluation and dump_batches",
		promise: "the last whole step is saved, the exit code is 130, and the run goes on bit for bit"},
	{name: "ranks", tries: 20, short: 2, sweeps: true, try: interruptRanks,
		attack:  "SIGINT or SIGTERM for two ranks, started by `--nproc`, mpirun, mpiexec or the variables of torchrun, at start, rendezvous, in training, saving and evaluation",
		promise: "all processes end, with 130 where no launcher of MPI decides, and the job goes on with the same losses, bit for bit"},
	{name: "children", tries: 20, short: 2, try: leaveNothing,
		attack:  "SIGINT, SIGTERM, SIGHUP or SIGKILL for a job of a framework whose ranks have children that ignore signals, some in sessions of their own",
		promise: "the exit code is 130, and no process of the job is left"},
	{name: "fail", tries: 20, short: 2, try: faults(faultError, faultPanic, faultDecline, faultSlow),
		attack:  "calls of ops that fail, panic, decline or are slow",
		promise: "another impl serves the call or the step is computed again; the same losses, bit for bit"},
	{name: "half", tries: 10, short: 1, try: faults(faultHalf),
		attack:  "calls of ops that fail after they wrote garbage into their results",
		promise: "the same losses, bit for bit; or the run ends, names the op, and goes on bit for bit"},
	{name: "nan", tries: 20, short: 2, try: notANumber,
		attack:  "calls of ops that give NaN without an error",
		promise: "the run ends, nothing with NaN is saved, and it goes on bit for bit without the fault"},
	{name: "wrong", tries: 20, short: 2, try: wrong,
		attack:  "calls of ops that give wrong numbers without an error, with verification of every call",
		promise: "verification names the impl that was wrong and puts it into quarantine"},
	{name: "late", tries: 10, short: 1, try: lateWrong,
		attack:  "a vendor whose ops are all right for hundreds of calls and then all wrong, with verification of every call",
		promise: "each op is put into quarantine at its first wrong call, which is kept; the same losses and weights, bit for bit"},
	{name: "files", tries: 40, short: 5, try: damage,
		attack: "checkpoints that are truncated, changed, incomplete, with a FIFO for a file, of a newer format, unreadable, or not ours",
		promise: "damaged ones are passed over, unreadable and newer ones are an error; nothing is removed, and the run goes on " +
			"bit for bit"},
	{name: "disk", tries: 20, short: 2, try: fullDisk,
		attack:  "a disk that is full at a random write",
		promise: "the error says so; with more space the run goes on bit for bit"},
	{name: "calls", tries: 10, short: 1, sweeps: true, try: failCalls,
		attack: "one system call that fails while a run trains, saves, removes old checkpoints, goes on and is exported: opening, writing, " +
			"fsync, renaming, removing or closing, with ENOSPC, EIO, EINTR or half a write",
		promise: "a process that ends says why; the run resumes from the newest checkpoint that was reported as saved, with the same losses, " +
			"bit for bit; what is exported is whole"},
	{name: "power", tries: 10, short: 1, sweeps: true, try: powerLoss,
		attack: "a loss of power between two system calls of the same, after which any part of what was not synced is left: data and names " +
			"apart, in any order",
		promise: "the run resumes from the newest checkpoint that was reported as saved, with the same losses, bit for bit; what is " +
			"exported is whole or absent"},
	{name: "policy", tries: 3, short: 1, try: policies,
		attack:  "policies by file and request, also faulty and unservable ones, while a run trains",
		promise: "the run trains on; the same losses, bit for bit"},
	{name: "flood", tries: 2, short: 1, try: flood,
		attack:  "requests without a token as fast as they go, while a run is watched and changed",
		promise: "every authorised change, probe and scrape is answered"},
	{name: "fleet", tries: 1, try: watchFleet,
		attack:  "SIGKILL, SIGTERM, SIGSTOP and hangs for 100 processes of a fleet, and a SIGKILL for its etcd",
		promise: "each is listed with the state that it is in"},
	{name: "serve", tries: 1, try: hostile,
		attack: "1,000 clients of twelve bad kinds, each kind with an address, beside ten good ones of a served model",
		promise: "every good request is answered, the 95th percentile of its first token is at most three times that without them or 150 ms, " +
			"less than 1 GiB is taken above the model, and nothing stays behind"},
	{name: "cancel", tries: 10, try: cancelWork,
		attack:  "the end of the context at a random moment of costly work: chat templates, repositories of patches, packed texts, Parquet, headers, tensors, experiments and policies",
		promise: "the work ends within 100 ms"},
}

func names(drills []drill) []string {
	var names []string
	for _, d := range drills {
		names = append(names, d.name)
	}
	return names
}

// result is the outcome of a drill.
type result struct {
	drill
	attacks, kept, broken int // broken counts tries, the others attacks
	skipped               string
	took                  time.Duration
}

// run makes the tries of a drill. It prints and counts the broken promises; it returns an error for
// everything else that goes wrong.
func (d drill) run(ctx context.Context, y *yard, o options) (result, error) {
	r, tries, begin := result{drill: d}, d.tries, time.Now()
	if o.short {
		tries = d.short
	}
	if o.sweep && d.sweeps {
		tries = 1
	}
	for i := range tries {
		l, err := y.newLab(fmt.Sprintf("%s-%d", d.name, i))
		if err != nil {
			return r, err
		}
		attacks, err := d.try(ctx, l, rand.New(rand.NewPCG(o.seed, uint64(i))))
		switch {
		case ctx.Err() != nil:
			return r, ctx.Err()
		case errors.Is(err, errSkip):
			r.skipped = err.Error()
			return r, os.RemoveAll(l.dir)
		case err != nil:
			r.broken++
			fmt.Fprintf(y.progress, "\n%s, try %d: %v\n  repeat with -seed %d -only %s; its files: %s\n", d.name, i, err, o.seed, d.name, l.dir)
		default:
			r.kept += attacks
			if err := os.RemoveAll(l.dir); err != nil {
				return r, err
			}
		}
		r.attacks += attacks
		fmt.Fprintf(y.progress, "\r%-8s %d of %d tries, %d broken ", d.name, i+1, tries, r.broken)
	}
	r.took = time.Since(begin)
	fmt.Fprintln(y.progress)
	return r, nil
}

// section returns the table of the results.
func section(markdown bool, results []result) plaintext.Section {
	t := plaintext.Section{Header: table.Row{"drill", "attacks", "kept", "seconds"}, Right: []int{2, 3, 4}}
	if markdown {
		t = plaintext.Section{Header: table.Row{"drill", "attack", "promise", "attacks", "kept"}, Right: []int{4, 5}}
	}
	for _, r := range results {
		row := table.Row{r.name, r.attacks, r.outcome(), fmt.Sprintf("%.0f", r.took.Seconds())}
		if markdown {
			row = table.Row{r.name, r.attack, r.promise, r.attacks, r.outcome()}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r result) outcome() string {
	if r.skipped != "" {
		return strings.TrimSpace(r.skipped)
	}
	return fmt.Sprint(r.kept)
}
