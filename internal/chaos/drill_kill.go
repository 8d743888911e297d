//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// kill ends a run with SIGKILL up to three times, and lets it continue.
func kill(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	kills := 1 + random.IntN(3)
	for range kills {
		p, err := l.start(ctx)
		if err != nil {
			return 0, err
		}
		p.Reach("training llama_2M")
		until := time.Now().Add(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
		for i := 0; time.Now().Before(until) && p.Running(); i++ { // the run reads the policy file now and then
			if err := l.setPolicy(fmt.Sprintf("# %d\n%s", i, calm)); err != nil {
				return 0, err
			}
			time.Sleep(time.Millisecond)
		}
		p.Kill()
		if _, err := p.wait(); err != nil {
			return 0, err
		}
	}
	return kills, l.goesOn(ctx)
}

// endings are the signals that ask a run to end.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// interrupt sends a signal during a phase of a run, and lets the run continue.
func interrupt(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	type phase struct {
		name, text string // the signal comes some milliseconds after this text
		args       []string
	}
	phases := []phase{
		{"start", "", nil},
		{"training", "step 3/", nil},
		{"saving", "saved checkpoint step=2", nil},
		{"evaluation", "step 3/", []string{"eval_iters=100000"}},
		{"dump_batches", "training llama_2M", []string{"dump_batches=100000"}},
	}
	at, signal := phases[random.IntN(len(phases))], endings[random.IntN(len(endings))]
	p, err := l.start(ctx, at.args...)
	if err != nil {
		return 0, err
	}
	p.Reach(at.text)
	time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
	if !p.Running() {
		return 0, l.endsAsUndisturbed(ctx) // it ended before the signal
	}
	p.Process.Process.Signal(signal)
	code, err := p.wait()
	early := at.name == "start" && code == -1 // no handler yet: nothing was trained
	if err == nil && code != 130 && code != 0 && !early {
		err = fmt.Errorf("exit code %d, want 130\n%s", code, p.Tail())
	}
	if err == nil && code == 0 { // the signal came after the last step
		err = l.endsAsUndisturbed(ctx)
	}
	if err == nil {
		err = l.goesOn(ctx)
	}
	if err != nil {
		err = fmt.Errorf("after %v in %s: %w", signal, at.name, err)
	}
	return 1, err
}
