package python

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
)

// event is a line of the report of the shim.
type event struct {
	Event    string            `json:"event"`
	Phase    string            `json:"phase"`
	ID       string            `json:"id"`
	Result   string            `json:"result"`
	Reason   string            `json:"reason"`
	Text     string            `json:"text"`
	Key      string            `json:"key"`
	By       string            `json:"by"`
	Python   string            `json:"python"`
	Versions map[string]string `json:"versions"`
	Values   json.RawMessage   `json:"values"`
}

// outcome is what the shim has reported.
type outcome struct {
	patches   []backend.PatchResult
	versions  []backend.Version
	arguments json.RawMessage // nil when none were reported
	warnings  []string
}

// maxReport bounds what the shim reports.
const maxReport = 64 << 20

// readReport reads what the shim reports. It is in the run directory, which nodes usually share. A
// framework that is started without the shim has no report.
func (t *trainer) readReport() error {
	text, err := durable.ReadRegular(filepath.Join(filepath.Dir(t.plan.LogDir), launchDir, ReportName), maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report of the framework: %w", err)
	}
	for line := range bytes.Lines(text) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // an incomplete line of a process that was killed
		}
		switch e.Event {
		case "start":
			t.outcome.versions = append(t.outcome.versions, backend.Version{Name: "python", Version: e.Python})
		case "arguments":
			t.outcome.arguments = e.Values
			for _, name := range []string{"torch", "transformer_engine", "primus_turbo"} {
				if v := e.Versions[name]; v != "" {
					t.outcome.versions = append(t.outcome.versions, backend.Version{Name: name, Version: v})
				}
			}
		case "patch":
			t.outcome.patches = append(t.outcome.patches, backend.PatchResult{Phase: e.Phase, ID: e.ID, Result: e.Result, Reason: e.Reason, By: backend.ByPython})
			if e.Result == backend.PatchFailed {
				t.outcome.warnings = append(t.outcome.warnings, fmt.Sprintf("patch %s of phase %s has failed in Python: %s", e.ID, e.Phase, e.Reason))
			}
		case "warning":
			t.outcome.warnings = append(t.outcome.warnings, e.Text)
		case "dropped":
			t.outcome.warnings = append(t.outcome.warnings, fmt.Sprintf("parameter %s has no effect: it is not accepted by %s", e.Key, e.By))
		}
	}
	return nil
}

func (t *trainer) warn(format string, args ...any) {
	t.tc.Log.Warn(fmt.Sprintf("[Primus:%s] ", t.f.Name) + fmt.Sprintf(format, args...))
}

// tell passes on the warnings of the report and the patches that Python has applied, phase by
// phase.
func (t *trainer) tell() {
	for _, w := range t.outcome.warnings {
		t.warn("%s", w)
	}
	var phases []string
	applied := map[string][]string{}
	for _, p := range t.outcome.patches {
		if p.Result != backend.PatchApplied {
			continue
		}
		if applied[p.Phase] == nil {
			phases = append(phases, p.Phase)
		}
		applied[p.Phase] = append(applied[p.Phase], p.ID)
	}
	for _, phase := range phases {
		t.tc.Log.Info(fmt.Sprintf("[Primus:%s] patches that Python has applied in phase %s: %d (%s)", t.f.Name, phase, len(applied[phase]), strings.Join(applied[phase], ", ")))
		if o, ok := t.tc.Observer.(backend.PatchObserver); ok {
			o.PatchesApplied(phase, applied[phase])
		}
	}
}

// patches returns the results of all patches, those of this program first.
func (t *trainer) patches() []backend.PatchResult {
	return slices.Concat(t.tc.PatchResults, t.outcome.patches)
}

// versions returns the versions of the framework and of what it runs with.
func (t *trainer) versions() []backend.Version {
	var all []backend.Version
	if t.tc.Version != "" {
		all = append(all, backend.Version{Name: t.f.Name, Version: t.tc.Version})
	}
	return append(all, t.outcome.versions...)
}

// opEvent passes on an event of the op manager in a rank, and warns of the first fallback of each
// kind.
func (t *trainer) opEvent(rank int, e opmanager.Event) {
	t.opMu.Lock()
	defer t.opMu.Unlock()
	t.ranks.OpEvent(rank, e)
	if o, ok := t.tc.Observer.(backend.DispatchObserver); ok {
		o.OpEvent(rank, e)
	}
	if q, ok := e.(opmanager.Quarantined); ok {
		t.warn("op %s: %s is in quarantine in rank %d: %v", q.Op, q.Impl.ID, rank, q.Cause)
	}
	fell, ok := e.(opmanager.FellBack)
	if !ok {
		return
	}
	key := fell.Op + " " + fell.From.ID + " " + fell.To.ID
	if t.fallbacks[key] {
		return
	}
	if t.fallbacks == nil {
		t.fallbacks = map[string]bool{}
	}
	t.fallbacks[key] = true
	from := fell.From.ID
	if from == "" {
		from = "another impl"
	}
	t.warn("op %s fell back from %s to %s in rank %d: %v; further fallbacks of this kind are counted only", fell.Op, from, fell.To.ID, rank, fell.Cause)
}

// dispatchReport is the content of dispatch.json.
type dispatchReport struct {
	Framework string                `json:"framework"`
	Policy    *oppolicy.Policy      `json:"policy,omitempty"`
	Versions  []backend.Version     `json:"versions"`
	Patches   []backend.PatchResult `json:"patches"`
	Ranks     []backend.RankUse     `json:"ranks"`
	Arguments json.RawMessage       `json:"arguments,omitempty"`
}

// writeDispatch writes which impls the processes used, the results of the patches, and with which
// versions and arguments the framework ran.
func (t *trainer) writeDispatch() error {
	r := dispatchReport{
		Framework: t.f.Name, Versions: t.versions(), Patches: t.patches(), Ranks: t.ranks.Uses(), Arguments: t.outcome.arguments,
	}
	if t.tc.Manager != nil {
		p := t.tc.Manager.Policy()
		r.Policy = &p
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", rundir.DispatchName, err)
	}
	return t.dir.WriteFile(rundir.DispatchName, append(text, '\n'))
}

// withInterpreter adds to the failure of a process that lacks a module which Python ran it.
func (t *trainer) withInterpreter(err error) error {
	var failure *launch.Failure
	if !errors.As(err, &failure) || !strings.HasPrefix(failure.Cause(), "ModuleNotFoundError") {
		return err
	}
	path, lookErr := exec.LookPath(t.plan.Python)
	if lookErr != nil {
		return err
	}
	version, _ := exec.Command(path, "--version").Output() // without it, the path says enough
	return fmt.Errorf("%w\nit ran in %s (%s); --python PROGRAM chooses another", err, path, strings.TrimSpace(string(version)))
}
