//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// trainCalls is roughly how many calls of ops the steps of a run make.
const trainCalls = 6000

// inject plans faults in calls of the next runs of a lab.
func (l *lab) inject(random *rand.Rand, faults int, kinds ...string) error {
	p := plan{Log: l.faultLog()}
	for range faults {
		p.Calls = append(p.Calls, 1+random.Int64N(trainCalls))
		p.Kinds = append(p.Kinds, kinds[random.IntN(len(kinds))])
	}
	return l.plant(p)
}

// plant makes the next runs of a lab follow a plan.
func (l *lab) plant(p plan) error {
	text, err := json.Marshal(p)
	l.env = []string{faultVariable + "=" + string(text)}
	return err
}

func (l *lab) faultLog() string { return filepath.Join(l.dir, "faults") }

// injected returns the kind and the op of each fault that happened.
func (l *lab) injected() ([]string, error) {
	text, err := os.ReadFile(l.faultLog())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), err
}

// faults returns the try function of a drill in which calls fail and the run must end as if they
// had not failed.
func faults(kinds ...string) func(context.Context, *lab, *rand.Rand) (int, error) {
	return func(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
		quarantine := []string{"off", "on", "{failures: 1, backoff: 10ms}"}[random.IntN(3)]
		err := errors.Join(l.setPolicy(calm+"prefer: vendor\nquarantine: "+quarantine+"\n"), l.inject(random, 60, kinds...))
		if err != nil {
			return 0, err
		}
		p, err := l.once(ctx)
		if err != nil {
			return 1, err
		}
		happened, err := l.injected()
		if err != nil || len(happened) == 0 {
			return 1, errors.Join(err, fmt.Errorf("no fault happened:\n%s", p.Tail()))
		}
		if p.Code() == 0 {
			return len(happened), l.endsAsUndisturbed(ctx)
		}
		if len(kinds) > 1 {
			return len(happened), fmt.Errorf("exit code %d after %v\n%s", p.Code(), happened, p.Tail())
		}
		// An operand that an op updates in place is lost when the op fails half way, so the call
		// cannot be repeated.
		if !p.Log.Contains("chaos: the device is lost half way") {
			return len(happened), fmt.Errorf("exit code %d, and the error does not say why\n%s", p.Code(), p.Tail())
		}
		l.env = nil
		return len(happened), l.goesOn(ctx)
	}
}

// notANumber makes one call return NaN. If the run continues, it must end like an undisturbed one.
func notANumber(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	if err := errors.Join(l.setPolicy(calm+"prefer: vendor\n"), l.inject(random, 1, faultNaN)); err != nil {
		return 0, err
	}
	p, err := l.once(ctx)
	if err != nil {
		return 1, err
	}
	happened, err := l.injected()
	switch {
	case err != nil:
		return 1, err
	case p.Code() == 0: // the call belonged to evaluation, or was never made
		return len(happened), l.endsAsUndisturbed(ctx)
	case !p.Log.Contains("NaN"):
		return 1, fmt.Errorf("exit code %d after %v, and the error does not say that a result is NaN\n%s", p.Code(), happened, p.Tail())
	}
	l.env = nil
	if err := l.goesOn(ctx); err != nil {
		return 1, fmt.Errorf("after %v: %w\nthe run that had ended before said\n%s", happened, err, p.Tail())
	}
	return 1, nil
}

// wrong makes one call of a verified run return wrong numbers. The run must accuse the impl that
// did first.
func wrong(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	policy := calm + "prefer: vendor\nverify: {fraction: 1, quarantine: true}\n"
	if err := errors.Join(l.setPolicy(policy), l.inject(random, 1, faultWrong)); err != nil {
		return 0, err
	}
	p, err := l.once(ctx)
	if err != nil {
		return 1, err
	}
	happened, err := l.injected()
	if err != nil || len(happened) == 0 {
		return 0, err
	}
	op := strings.TrimPrefix(happened[0], faultWrong+" ")
	const accused = "failed verification for op"
	for line := range strings.Lines(p.Log.String()) {
		if !strings.Contains(line, accused) {
			continue
		}
		if !strings.Contains(line, fmt.Sprintf("Implementation 'vendor.chaos' %s '%s'", accused, op)) {
			return 1, fmt.Errorf("vendor.chaos was wrong in op %s; accused was: %s", op, line)
		}
		return 1, nil
	}
	if p.Code() == 0 && l.endsAsUndisturbed(ctx) == nil { // the call was a trial before the first step
		return 1, nil
	}
	return 1, fmt.Errorf("vendor.chaos was wrong in op %s, which nobody noticed; exit code %d\n%s", op, p.Code(), p.Tail())
}

// lateWrong lets all ops of a vendor become wrong after hundreds of right calls, forward, backward
// and in place, with every call verified. The run must end as if there were no vendor, and every
// wrong call that is kept must show it.
func lateWrong(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	begin := 500 + random.Int64N(trainCalls/2)
	err := errors.Join(l.setPolicy("allow_vendors: [chaos]\nprefer: vendor\nverify: always\n"), l.plant(plan{Log: l.faultLog(), Wrong: begin}))
	if err != nil {
		return 0, err
	}
	p, err := l.once(ctx)
	if err != nil {
		return 1, err
	}
	happened, err := l.injected()
	if err != nil || len(happened) == 0 {
		return 1, errors.Join(err, fmt.Errorf("nothing was wrong:\n%s", p.Tail()))
	}
	if p.Code() != 0 {
		return len(happened), fmt.Errorf("exit code %d, wrong from call %d on\n%s", p.Code(), begin, p.Tail())
	}
	if err := l.endsAsUndisturbed(ctx); err != nil {
		return len(happened), fmt.Errorf("wrong from call %d on: %w", begin, err)
	}
	files, err := filepath.Glob(l.path("wrong-calls", "*.safetensors"))
	if err != nil || len(files) == 0 {
		return len(happened), fmt.Errorf("no wrong call was kept: %w\n%s", err, p.Tail())
	}
	for _, fault := range happened {
		op := strings.TrimPrefix(fault, faultWrong+" ")
		accused := fmt.Sprintf("Implementation 'vendor.chaos' quarantined for op '%s' until it is cleared, because a result was wrong", op)
		if !p.Log.Contains(accused) {
			return len(happened), fmt.Errorf("vendor.chaos was wrong in op %s from call %d on, and the log does not say so\n%s", op, begin, p.Tail())
		}
	}
	return len(happened), nil
}
