package python

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/primus-fl/primus/runtime/backend"
)

// event is a line of the report of the shim.
type event struct {
	Event  string `json:"event"`
	Phase  string `json:"phase"`
	ID     string `json:"id"`
	Result string `json:"result"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Key    string `json:"key"`
	By     string `json:"by"`
}

// tell logs what the shim reports: the patches that it has applied, failures, and parameters
// without effect. A framework that is started without the shim has no report.
func (t *trainer) tell() error {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(t.plan.LogDir), launchDir, ReportName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report of the framework: %w", err)
	}
	warn := func(format string, args ...any) {
		t.tc.Log.Warn(fmt.Sprintf("[Primus:%s] ", t.f.Name) + fmt.Sprintf(format, args...))
	}
	var phases []string
	applied := map[string][]string{}
	for line := range bytes.Lines(text) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // an incomplete line of a process that was killed
		}
		switch {
		case e.Event == "patch" && e.Result == "applied":
			if applied[e.Phase] == nil {
				phases = append(phases, e.Phase)
			}
			applied[e.Phase] = append(applied[e.Phase], e.ID)
		case e.Event == "patch" && e.Result == "failed":
			warn("patch %s of phase %s has failed in Python: %s", e.ID, e.Phase, e.Reason)
		case e.Event == "warning":
			warn("%s", e.Text)
		case e.Event == "dropped":
			warn("parameter %s has no effect: it is not accepted by %s", e.Key, e.By)
		}
	}
	for _, phase := range phases {
		t.tc.Log.Info(fmt.Sprintf("[Primus:%s] patches that Python has applied in phase %s: %d (%s)", t.f.Name, phase, len(applied[phase]), applied[phase]))
		if o, ok := t.tc.Observer.(backend.PatchObserver); ok {
			o.PatchesApplied(phase, applied[phase])
		}
	}
	return nil
}
