package dispatch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/primus-fl/primus/internal/tuning"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
)

// The values of --tune that are not names of files.
const (
	TuneOff  = "off"
	TuneAuto = "auto"
)

// Tuning is the tuning file of a policy.
type Tuning struct {
	path    string
	file    *tuning.File // nil before load
	choices *oppolicy.Tuning
	refused bool // it belongs to another machine
}

// load reads the file once.
func (t *Tuning) load() error {
	if t == nil || t.file != nil {
		return nil
	}
	if t.path == TuneAuto {
		return errors.New("--tune: auto measures before training, and this command does not train; want the FILE of primus ops tune, or off")
	}
	file, err := tuning.Read(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; want the FILE of primus ops tune, or off", err)
	}
	if err != nil {
		return fmt.Errorf("--tune: %w", err)
	}
	families := map[string]string{}
	for _, op := range ops.All() {
		families[op.Name()] = op.Family()
	}
	t.file, t.choices = file, file.Tuning("tuning file "+t.path, func(op string) string { return families[op] })
	return nil
}

// apply adds the choices to a policy, unless they belong to another machine.
func (t *Tuning) apply(p *oppolicy.Policy) {
	if t != nil && t.choices != nil && !t.refused {
		p.UseTuning(t.choices)
	}
}

// CheckTuning returns the policy without the choices of a tuning file that was not made for this
// machine and this program, and warns of that.
func (s *Sources) CheckTuning(p oppolicy.Policy, snap *opregistry.Snapshot, threads int, log *slog.Logger) (oppolicy.Policy, error) {
	t := s.Tuning
	if t == nil || t.file == nil {
		return p, nil
	}
	err := t.file.Check(t.path, tuning.ThisMachine(snap, threads))
	if elsewhere, ok := errors.AsType[*tuning.MachineError](err); ok {
		t.refused = true
		log.Warn(elsewhere.Error())
		checked, _, err := s.Load()
		return checked, err
	}
	return p, err
}
