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
	return 1, fmt.Errorf("vendor.chaos was wrong in op %s, which nobody noticed; exit code %d\n%s", op, p.Code(), p.Tail())
}
