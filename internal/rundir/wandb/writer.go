package wandb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/primus-fl/primus/internal/rundir/tensorboard"
)

// The fields of wandb_internal.Record and of what it holds.
const (
	recordNum     = 1
	recordHistory = 2
	recordSummary = 3
	recordRun     = 17
	recordExit    = 18
	recordHeader  = 21

	runID        = 1
	runEntity    = 2
	runProject   = 3
	runConfig    = 4
	runGroup     = 6
	runName      = 8
	runHost      = 13
	runStartTime = 17

	itemKey  = 1 // of items of history, configuration and summary
	itemJSON = 16

	listItem    = 1 // of history, configuration and summary
	historyStep = 2
	stepNum     = 1

	exitCode    = 1
	exitRuntime = 2
)

// DirName is the directory, within that of Settings, that holds the directories of runs.
const DirName = "wandb"

// Settings describe a run.
type Settings struct {
	Dir     string // in which the directory of the run is made
	Project string
	Entity  string
	Name    string
	Group   string
	Config  map[string]any
}

// Writer writes a run.
type Writer struct {
	f      *os.File
	log    recordLog
	dir    string
	id     string
	num    int64
	begun  time.Time
	latest map[string]float64
	broken error
}

// Create makes the directory and the file of a run. The caller closes it.
func Create(s Settings) (*Writer, error) {
	now := time.Now()
	w := &Writer{id: newID(), begun: now, latest: map[string]float64{}}
	w.dir = filepath.Join(s.Dir, DirName, "offline-run-"+now.Format("20060102_150405")+"-"+w.id)
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, fmt.Errorf("wandb: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(w.dir, "run-"+w.id+".wandb"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("wandb: %w", err)
	}
	w.f, w.log.out = f, f
	config, err := items(s.Config)
	if err == nil {
		err = w.log.begin()
	}
	if err == nil {
		err = errors.Join(w.record(recordHeader, nil), w.record(recordRun, w.run(s, config)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wandb: %w", err), f.Close())
	}
	return w, nil
}

// newID returns eight letters and digits.
func newID() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	id := make([]byte, 8)
	for i := range id {
		id[i] = letters[rand.IntN(len(letters))]
	}
	return string(id)
}

// Dir returns the directory of the run, for wandb sync.
func (w *Writer) Dir() string { return w.dir }

func (w *Writer) run(s Settings, config []byte) []byte {
	host, _ := os.Hostname() // without a name, the run has no host
	b := appendText(nil, runID, w.id)
	b = appendText(b, runEntity, s.Entity)
	b = appendText(b, runProject, s.Project)
	b = appendBytes(b, runConfig, config)
	b = appendText(b, runGroup, s.Group)
	b = appendText(b, runName, s.Name)
	b = appendText(b, runHost, host)
	at := appendNumber(nil, 1, w.begun.Unix())
	return appendBytes(b, runStartTime, appendNumber(at, 2, int64(w.begun.Nanosecond())))
}

// Log writes the values of a step with the present time. They are in the file when it returns.
func (w *Writer) Log(step int64, values ...tensorboard.Scalar) error {
	now := time.Now()
	all := map[string]any{"_step": step, "_timestamp": seconds(now.UnixNano()), "_runtime": now.Sub(w.begun).Seconds()}
	for _, v := range values {
		all[v.Tag] = v.Value
	}
	history, err := items(all)
	if err != nil {
		return fmt.Errorf("wandb: step %d: %w", step, err)
	}
	for _, v := range values {
		w.latest[v.Tag] = v.Value
	}
	return w.record(recordHistory, appendBytes(history, historyStep, appendNumber(nil, stepNum, step)))
}

func seconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e9 }

// Close writes the summary and the exit and closes the file. Further calls do nothing.
func (w *Writer) Close(failed bool) error {
	if w.f == nil {
		return nil
	}
	summary := map[string]any{}
	for key, v := range w.latest {
		summary[key] = v
	}
	list, err := items(summary)
	if err == nil {
		err = w.record(recordSummary, list)
	}
	code := int64(0)
	if failed {
		code = 1
	}
	exit := appendNumber(appendNumber(nil, exitCode, code), exitRuntime, int64(time.Since(w.begun).Seconds()))
	err = errors.Join(err, w.record(recordExit, exit), w.f.Close())
	w.f = nil
	return err
}

// record writes a record with one field.
func (w *Writer) record(field protowire.Number, content []byte) error {
	if w.broken != nil {
		return w.broken
	}
	w.num++
	b := protowire.AppendTag(appendNumber(nil, recordNum, w.num), field, protowire.BytesType)
	if err := w.log.append(protowire.AppendBytes(b, content)); err != nil {
		w.broken = fmt.Errorf("wandb: %w", err)
	}
	return w.broken
}

// items returns a list of keys with values in JSON, sorted by keys.
func items(values map[string]any) ([]byte, error) {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, err := json.Marshal(values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		b = appendBytes(b, listItem, appendText(appendText(nil, itemKey, key), itemJSON, string(text)))
	}
	return b, nil
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendBytes(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

func appendNumber(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}
