package python

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

// opLog reads the lines that TransformerEngine-FL writes about dispatch in the processes of a
// framework, as events of an op manager.
type opLog struct {
	impls  map[string]opmanager.ImplInfo // by id
	failed map[rankOp]opmanager.Failed   // the last failure of an op in a rank, while no other impl has served it
}

type rankOp struct {
	rank int
	op   string
}

// The lines begin with [2026-01-31 12:00:00,000 TE-FL manager.py:133 INFO], the time may be absent.
var (
	opLine     = regexp.MustCompile(`\[(?:[^\[\]]* )?TE-FL \S+ (?:DEBUG|INFO|WARNING|ERROR)\] (.*)`)
	registered = regexp.MustCompile(`^OpManager initialized: (\d+) ops with (\d+) implementations`)
	serves     = regexp.MustCompile(`^Op '([^']+)' (using|fallback to) '([^']+)' \(kind=([^,)]*)(?:, vendor=([^)]*))?\)`)
	switches   = regexp.MustCompile(`^Op '([^']+)' switched from '([^']+)' to '([^']+)' \(kind=([^,)]*)(?:, vendor=([^)]*))?\)`)
	failedImpl = regexp.MustCompile(`^(?:Cached implementation|Implementation|Last implementation) '([^']+)' failed for op '([^']+)': (.*)`)
)

// events returns what a line of a rank says, nothing for most lines.
func (l *opLog) events(rank int, line string) []opmanager.Event {
	if !strings.Contains(line, "TE-FL") {
		return nil
	}
	m := opLine.FindStringSubmatch(Plain(line))
	if m == nil {
		return nil
	}
	text := m[1]
	if m := registered.FindStringSubmatch(text); m != nil {
		ops, _ := strconv.Atoi(m[1])
		impls, _ := strconv.Atoi(m[2])
		return []opmanager.Event{opmanager.Registered{Ops: ops, Impls: impls}}
	}
	if m := serves.FindStringSubmatch(text); m != nil {
		return l.served(rank, m[1], m[2] == "using", l.impl(m[3], m[4], m[5]))
	}
	if m := switches.FindStringSubmatch(text); m != nil {
		return []opmanager.Event{opmanager.Switched{Op: m[1], From: l.impl(m[2], "", ""), To: l.impl(m[3], m[4], m[5])}}
	}
	if m := failedImpl.FindStringSubmatch(text); m != nil {
		failure := opmanager.Failed{Op: m[2], Impl: l.impl(m[1], "", ""), Err: errors.New(m[3])}
		if l.failed == nil {
			l.failed = map[rankOp]opmanager.Failed{}
		}
		l.failed[rankOp{rank, m[2]}] = failure
		return []opmanager.Event{failure}
	}
	return nil
}

// served returns the events of an impl that has served a call. After a failure of another one this
// is a fallback, also where TransformerEngine-FL writes that it uses the impl.
func (l *opLog) served(rank int, op string, first bool, impl opmanager.ImplInfo) []opmanager.Event {
	var events []opmanager.Event
	if first {
		events = append(events, opmanager.Selected{Op: op, Impl: impl})
	}
	at := rankOp{rank, op}
	failure, fell := l.failed[at]
	delete(l.failed, at)
	switch {
	case fell && failure.Impl.ID != impl.ID:
		return append(events, opmanager.FellBack{Op: op, From: failure.Impl, To: impl, Cause: failure.Err})
	case !first:
		return append(events, opmanager.FellBack{Op: op, To: impl, Cause: errors.New("the log does not say why")})
	}
	return events
}

// impl returns an impl by its id, with what lines say about it.
func (l *opLog) impl(id, kind, vendor string) opmanager.ImplInfo {
	known, ok := l.impls[id]
	if !ok {
		known = opmanager.ImplInfo{ID: id}
		known.Kind = kindOf(strings.SplitN(id, ".", 2)[0])
		if name, isVendor := strings.CutPrefix(id, "vendor."); isVendor {
			known.Vendor = name
		}
	}
	if k := kindOf(kind); k != opregistry.KindUnspecified {
		known.Kind = k
	}
	if vendor != "" && vendor != "None" {
		known.Vendor = strings.ToLower(vendor)
	}
	if l.impls == nil {
		l.impls = map[string]opmanager.ImplInfo{}
	}
	l.impls[id] = known
	return known
}

// kindOf returns the kind of a name such as vendor or BackendImplKind.DEFAULT.
func kindOf(name string) opregistry.Kind {
	name = strings.ToLower(name[strings.LastIndex(name, ".")+1:])
	if name == "default" {
		return opregistry.KindFlagos
	}
	kind, _ := opregistry.ParseKind(name) // unspecified for others
	return kind
}
