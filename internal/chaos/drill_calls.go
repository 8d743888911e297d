//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// callFault is a way in which a call fails.
type callFault struct {
	kind callKind
	verdict
}

func (f callFault) String() string {
	if f.short {
		return "half of a " + string(f.kind)
	}
	return fmt.Sprintf("%s in %s", f.fail.Error(), f.kind)
}

// callFaults are the faults of the drill.
var callFaults = []callFault{
	{callOpen, verdict{fail: syscall.ENOSPC}}, {callOpen, verdict{fail: syscall.EIO}}, {callOpen, verdict{fail: syscall.EINTR}},
	{callWrite, verdict{fail: syscall.ENOSPC}}, {callWrite, verdict{fail: syscall.EIO}}, {callWrite, verdict{fail: syscall.EINTR}},
	{callWrite, verdict{short: true}},
	{callSync, verdict{fail: syscall.EIO}}, {callSync, verdict{fail: syscall.ENOSPC}}, {callSync, verdict{fail: syscall.EINTR}},
	{callRename, verdict{fail: syscall.EIO}}, {callRename, verdict{fail: syscall.ENOSPC}}, {callRename, verdict{fail: syscall.EINTR}},
	{callExchange, verdict{fail: syscall.EIO}}, {callExchange, verdict{fail: syscall.EINTR}},
	{callMkdir, verdict{fail: syscall.ENOSPC}}, {callMkdir, verdict{fail: syscall.EIO}},
	{callTruncate, verdict{fail: syscall.EIO}}, {callTruncate, verdict{fail: syscall.ENOSPC}},
	{callRemove, verdict{fail: syscall.EIO}},
	{callClose, verdict{fail: syscall.EIO}}, {callClose, verdict{fail: syscall.ENOSPC}}, {callClose, verdict{fail: syscall.EINTR}},
}

// failCalls lets the n-th call of a kind fail in a cycle.
func failCalls(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	l.shorten()
	count := map[callKind]int{}
	if _, err := l.attackCycle(ctx, func(c fileCall) verdict {
		count[c.kind]++
		return verdict{}
	}); err != nil {
		return 0, err
	}
	type attack struct {
		callFault
		n int
	}
	var all []attack
	for _, f := range callFaults {
		for n := range count[f.kind] {
			all = append(all, attack{f, n})
		}
	}
	if !l.sweep {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(5, len(all))]
	}
	var broken []error
	for _, a := range all {
		if err := l.failsOnce(ctx, a.callFault, a.n); err != nil {
			broken = append(broken, fmt.Errorf("%v, the call %d of %d: %w", a.callFault, a.n+1, count[a.kind], err))
			if ctx.Err() != nil || !l.sweep {
				break
			}
		}
	}
	return len(all), errors.Join(broken...)
}

// failsOnce makes one attack.
func (l *lab) failsOnce(ctx context.Context, f callFault, n int) error {
	seen, hit := 0, ""
	reported, err := l.attackCycle(ctx, func(c fileCall) verdict {
		if c.kind != f.kind {
			return verdict{}
		}
		if seen++; seen-1 != n {
			return verdict{}
		}
		hit = c.path
		return f.verdict
	})
	if err == nil {
		err = l.recovers(ctx, reported)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", hit, err)
	}
	return err
}

// attackCycle makes a cycle in an empty lab and returns the newest step that was reported as saved.
// Processes may fail only with the error of the attack.
func (l *lab) attackCycle(ctx context.Context, judge func(fileCall) verdict) (reported int, err error) {
	for _, top := range l.written() {
		if err := os.RemoveAll(filepath.Join(l.dir, top)); err != nil {
			return 0, err
		}
	}
	var injected verdict
	for _, args := range l.cycle() {
		p, err := l.observe(ctx, func(c fileCall) verdict {
			v := judge(c)
			if v.fail != 0 {
				injected = v
			}
			return v
		}, args...)
		if err != nil {
			return 0, err
		}
		text := p.Log.String()
		reported = max(reported, last(savedStep, []byte(text)))
		switch code := p.Code(); {
		case strings.Contains(text, "goroutine ") || code == -1:
			return 0, fmt.Errorf("%s crashes\n%s", args[0], p.Tail())
		case code != 0 && injected.fail == 0:
			return 0, fmt.Errorf("%s fails without a fault: exit code %d\n%s", args[0], code, p.Tail())
		case code != 0 && !strings.Contains(text, injected.fail.Error()):
			return 0, fmt.Errorf("%s ends with exit code %d and does not say %q\n%s", args[0], code, injected.fail.Error(), p.Tail())
		case code != 0:
			return reported, nil
		}
	}
	return reported, nil
}
