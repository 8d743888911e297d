package library

import (
	"errors"
	"fmt"
	"log/slog"
	"unsafe"

	"github.com/primus-fl/primus/internal/plugin"
	"github.com/primus-fl/primus/ops"
)

// Register adds impls of the program to a manager: table is the address of a primus_plugin, which
// stays valid for the life of the process, as in a library that is a plugin.
func (l *Library) Register(number uint64, table unsafe.Pointer) error {
	m, err := l.managers.get(number)
	if err != nil {
		return err
	}
	p, err := plugin.Adopt(uintptr(table), plugin.Settings{Ops: ops.All(), Log: slog.New(l.set.Log), AnyKind: true})
	if err != nil {
		return failure{CodeInvalid, err}
	}
	var faults []error
	for _, u := range p.Unused() {
		faults = append(faults, fmt.Errorf("impl %q of op %q: %s", u.Impl, u.Op, u.Reason))
	}
	if err := errors.Join(faults...); err != nil {
		return failure{CodeInvalid, err}
	}
	if err := m.registry.Register(p.Source()); err != nil {
		return failure{CodeInvalid, err}
	}
	return nil
}
