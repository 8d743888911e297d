package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	primus, config string
	args           []string // further arguments of primus
	clients        int
	every          time.Duration
	rounds         int
	phase, settle  time.Duration
	pin            bool
	phases         string
	output         string
}

func parseServe(args []string, progress io.Writer) (serveOptions, error) {
	var o serveOptions
	flags := newFlags("serve", progress)
	primusFlag(flags, &o.primus)
	formatFlag(flags, &o.output)
	flags.StringVar(&o.config, "config", "examples/native/configs/llama_6M-pretrain.yaml", "the experiment that is trained")
	flags.IntVar(&o.clients, "clients", 1000, "clients of a crowd")
	flags.DurationVar(&o.every, "every", 5*time.Second, "mean time between two questions of a client that polls")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each phase has its turn")
	flags.DurationVar(&o.phase, "phase", 5*time.Second, "length of a phase")
	flags.DurationVar(&o.settle, "settle", 1500*time.Millisecond, "time before a phase in which its crowd arrives")
	flags.BoolVar(&o.pin, "pin", true, "keep training and crowd on different CPUs")
	flags.StringVar(&o.phases, "phases", "off,poll,follow", "what is compared with a service that nobody asks, with commas: off is no service, poll and follow are crowds")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.args = flags.Args() // key=value of the experiment, and flags after --
	switch {
	case o.clients < 1 || o.clients > maxClients || o.rounds < 1:
		return o, fmt.Errorf("given %d clients and %d rounds, want 1 to %d clients and at least one round", o.clients, o.rounds, maxClients)
	case o.every <= 0 || o.phase <= 0 || o.settle <= 0:
		return o, fmt.Errorf("given -every %v -phase %v -settle %v, want positive durations", o.every, o.phase, o.settle)
	}
	return o, checkFormat(flags)
}

// serve measures what watching costs training, in one run: steps of llama_6M on flagos
// without the service, with it, with a crowd that polls it, and with a crowd that follows its
// events.
//
// Two processes train, one with --serve and one without; one of them is stopped while the other one
// runs. Phases alternate, and ratios are computed within a round. Each phase is measured by the CPU
// time of a step as well as by its duration, because CPU time depends little on other load of the
// machine.
//
// The share of CPU time that connections take comes from a profile of the process.
//
// The crowd runs on the same machine. With -pin, training and its service have the first CPU for
// themselves, with one thread, and the crowd has the others: what the service takes, training
// loses, and the ratio contains nothing else. With -pin=false all share all CPUs, and the ratio
// includes the work of the crowd.
//
// Every client has its own address in 127.0.0.0/8, as if it came from another machine, so the
// program is for Linux.
func serve(ctx context.Context, args []string, out, progress io.Writer) error {
	opts, err := parseServe(args, progress)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	report, err := measureServe(ctx, opts, dir, progress)
	if err != nil {
		return err
	}
	return write(out, opts.output, report, report.writeTable)
}

// phase is what a crowd does while a process trains.
type phase struct {
	name  string
	serve bool // whether the process that trains has the service
	crowd func(context.Context, *crowd) error
}

// phases returns the phase that the others are compared with, and the phases with these keys.
func phases(keys string) ([]phase, error) {
	others := map[string]phase{
		"off":    {"without the service", false, nil},
		"poll":   {"clients poll", true, pollers},
		"follow": {"clients follow events", true, followers},
	}
	chosen := []phase{{"nobody asks", true, nil}}
	for key := range strings.SplitSeq(keys, ",") {
		p, ok := others[key]
		if !ok {
			return nil, fmt.Errorf("-phases: given %q, want off, poll or follow, with commas", key)
		}
		chosen = append(chosen, p)
	}
	return chosen, nil
}

// measureServe trains in all phases by turns.
func measureServe(ctx context.Context, o serveOptions, dir string, progress io.Writer) (r serveReport, err error) {
	chosen, err := phases(o.phases)
	if err != nil {
		return r, err
	}
	pin, err := pinning(o.pin)
	if err != nil {
		return r, err
	}
	r = newServeReport(o, pin != nil, chosen)
	runs := map[bool]*serveRun{} // by whether they have the service
	for _, p := range chosen {
		if runs[p.serve] != nil {
			continue
		}
		t, err := startServeRun(ctx, o, pin, dir, p.serve)
		if err != nil {
			return r, err
		}
		defer t.Kill()
		runs[p.serve] = t
		if err := t.pause(); err != nil {
			return r, err
		}
	}
	for round := range o.rounds {
		for i, p := range chosen {
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, p.name)
			seen, err := oneTurn(ctx, o, runs[p.serve], p)
			if err != nil {
				return r, fmt.Errorf("%s: %w", p.name, err)
			}
			r.Phases[i].turns = append(r.Phases[i].turns, seen)
		}
	}
	r.compare()
	return r, nil
}

// serveTurn holds the measurements of one turn of a phase.
type serveTurn struct {
	steps   []float64 // seconds
	served  float64   // share of the CPU time spent on connections
	cpu     float64   // of the process, seconds per step
	memory  uint64    // resident bytes of the process at the end
	answers []float64 // seconds that clients waited
	events  int       // that clients received
	refused int       // answers other than 200
}

func oneTurn(ctx context.Context, o serveOptions, t *serveRun, p phase) (serveTurn, error) {
	if err := t.resume(); err != nil {
		return serveTurn{}, err
	}
	var got serveTurn
	crowded, c, leave := gather(ctx, o, t.addr(), p.crowd)
	defer leave()
	if err := sleep(ctx, o.settle); err != nil {
		return got, err
	}
	first, err := t.boundary(ctx)
	if err != nil {
		return got, err
	}
	c.forget()
	profiled := t.profile(ctx, o.phase)
	last := first
	for time.Since(first.at) < o.phase {
		if last, err = t.boundary(ctx); err != nil {
			return got, err
		}
	}
	if got.served, err = profiled(); err != nil {
		return got, err
	}
	got.answers, got.events, got.refused = c.seen()
	if got.memory, err = t.memory(); err != nil {
		return got, err
	}
	if got.steps, err = t.stepsBetween(first, last); err != nil {
		return got, err
	}
	got.cpu = (last.cpu - first.cpu) / float64(len(got.steps))
	leave()
	if err := <-crowded; err != nil {
		return got, err
	}
	return got, t.pause()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
