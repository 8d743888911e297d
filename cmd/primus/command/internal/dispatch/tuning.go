package dispatch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"

	"github.com/primus-fl/primus/internal/tuning"
	"github.com/primus-fl/primus/opmanager"
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

// layer returns the layer of the choices.
func (t *Tuning) layer() opmanager.PolicyLayer {
	if t == nil {
		return opmanager.PolicyLayer{}
	}
	p := oppolicy.Default()
	p.UseTuning(t.choices)
	return opmanager.PolicyLayer{Policy: p, Origin: t.choices.Source}
}

// CheckTuning returns the layers without that of a tuning file that was not made for this machine
// and this program, and warns of that.
func (s *Sources) CheckTuning(layers opmanager.PolicyLayers, snap *opregistry.Snapshot, threads int, log *slog.Logger) (opmanager.PolicyLayers, error) {
	t := s.Tuning
	if t == nil || t.file == nil {
		return layers, nil
	}
	err := t.file.Check(t.path, tuning.ThisMachine(snap, threads))
	if elsewhere, ok := errors.AsType[*tuning.MachineError](err); ok {
		log.Warn(elsewhere.Error())
		layers = maps.Clone(layers)
		delete(layers, opmanager.LayerTuning)
		return layers, nil
	}
	return layers, err
}
