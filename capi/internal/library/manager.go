package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/rankops"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
)

// timeless is the time of log records, which the program that shows them adds.
var timeless time.Time

// Options are those of Open.
type Options struct {
	Threads    uint32 // that compute; 0 leaves the choice to the environment
	Policy     string // YAML, above the policy file and the environment
	PolicyFile string // "" for the one that PRIMUS_POLICY names
	Flags      uint32 // WithoutVariables, or none
}

// WithoutVariables opens a manager that does not read the TE_FL_* variables.
const WithoutVariables = 1

// manager is an op manager that a program has opened.
type manager struct {
	*opmanager.Manager
	library  *Library
	registry *opregistry.Registry
	pool     *parallel.Pool
	gather   *prometheus.Registry
	dispatch *metrics.Dispatch
	reporter *rankops.Reporter // to the program that has started this process, nil for none
	file     string            // the policy file, "" for none
	flags    uint32
}

// Open opens an op manager over all impls of the library and returns its number.
func (l *Library) Open(o Options) (uint64, error) {
	if o.Flags&^WithoutVariables != 0 {
		return 0, invalid("given flags %#x, want PRIMUS_OPEN_WITHOUT_VARIABLES or none", o.Flags)
	}
	threads, err := l.threads(o.Threads)
	if err != nil {
		return 0, err
	}
	m := &manager{library: l, registry: opregistry.NewRegistry(), gather: prometheus.NewRegistry(), file: o.PolicyFile, flags: o.Flags}
	if m.file == "" {
		m.file, _ = l.set.Lookup("PRIMUS_POLICY")
	}
	layers, err := m.layers(o.Policy)
	if err != nil {
		return 0, err
	}
	sources := []opregistry.Source{{Name: "catalogue", Ops: ops.All()}, flagos.Source(), reference.Source()}
	for _, src := range sources {
		if err := m.registry.Register(src); err != nil {
			return 0, err
		}
	}
	if m.dispatch, err = metrics.NewDispatch(m.gather); err != nil {
		return 0, err
	}
	listeners := []opmanager.Listener{m.dispatch, opmanager.NewLogListener(slog.New(l.set.Log))}
	socket, _ := l.set.Lookup(rankops.Variable)
	if socket != "" && o.Flags&WithoutVariables == 0 {
		m.reporter = &rankops.Reporter{}
		listeners = append(listeners, m.reporter)
	}
	m.pool = parallel.New(threads)
	m.Manager = opmanager.New(m.registry, oppolicy.Default(), opmanager.Settings{
		Exec: opregistry.NewExec(m.pool, device.DefaultStream), Layers: layers,
		Listeners: listeners,
	})
	m.dispatch.Watch(m.Manager)
	if m.reporter != nil {
		rank, _ := l.set.Lookup("RANK")
		if err := m.reporter.Start(context.Background(), socket, rank, m.Manager, l.warn); err != nil {
			l.warn(err.Error())
			m.reporter = nil
		}
	}
	for _, w := range m.Warnings() {
		l.warn(w)
	}
	return l.managers.add(m), nil
}

// Close closes a manager. Ops that are bound in it stay usable, on one thread.
func (l *Library) Close(number uint64) error {
	m, err := l.managers.take(number)
	if err != nil {
		return err
	}
	m.reporter.Close()
	m.Manager.Close()
	m.pool.Close()
	return nil
}

// Exit sends what managers have not reported yet, before the process ends.
func (l *Library) Exit() {
	for _, m := range l.managers.all() {
		if m != nil { // not closed yet
			m.reporter.Close()
		}
	}
}

// layers reads the policy file and the environment, and adds the policy of the program.
func (m *manager) layers(policy string) (opmanager.PolicyLayers, error) {
	file, fileErr := m.fileLayer()
	env, envErr := m.environmentLayer()
	own, ownErr := ownLayer(policy)
	if err := errors.Join(fileErr, envErr, ownErr); err != nil {
		return nil, failure{CodeInvalid, err}
	}
	return opmanager.PolicyLayers{opmanager.LayerFile: file, opmanager.LayerEnvironment: env, opmanager.LayerFlags: own}, nil
}

func (m *manager) fileLayer() (opmanager.PolicyLayer, error) {
	if m.file == "" {
		return opmanager.PolicyLayer{}, nil
	}
	file, err := policyfile.Read(context.Background(), m.file)
	if err != nil {
		return opmanager.PolicyLayer{}, err
	}
	return file.PolicyLayer, nil
}

func (m *manager) environmentLayer() (opmanager.PolicyLayer, error) {
	if m.flags&WithoutVariables != 0 {
		return opmanager.PolicyLayer{}, nil
	}
	p, err := oppolicy.FromEnvironment(m.library.set.Lookup)
	return opmanager.PolicyLayer{Policy: p, Origin: "environment"}, err
}

// ownLayer returns the layer of a policy that the program gives as text.
func ownLayer(text string) (opmanager.PolicyLayer, error) {
	if text == "" {
		return opmanager.PolicyLayer{}, nil
	}
	l, err := policyfile.Parse(context.Background(), "policy", []byte(text))
	if err != nil {
		return opmanager.PolicyLayer{}, err
	}
	return l.PolicyLayer, nil
}

// SetPolicy replaces the policy that the program gives as text; "" takes it away. With an error the
// old policy stays.
func (l *Library) SetPolicy(number uint64, text string) error {
	m, err := l.managers.get(number)
	if err != nil {
		return err
	}
	layer, err := ownLayer(text)
	if err != nil {
		return failure{CodeRefused, err}
	}
	return m.put(map[opmanager.LayerKind]opmanager.PolicyLayer{opmanager.LayerFlags: layer})
}

// ReloadPolicy reads the policy file and the environment again. With an error the old policy stays.
func (l *Library) ReloadPolicy(number uint64) error {
	m, err := l.managers.get(number)
	if err != nil {
		return err
	}
	file, fileErr := m.fileLayer()
	env, envErr := m.environmentLayer()
	if err := errors.Join(fileErr, envErr); err != nil {
		return failure{CodeRefused, err}
	}
	return m.put(map[opmanager.LayerKind]opmanager.PolicyLayer{opmanager.LayerFile: file, opmanager.LayerEnvironment: env})
}

// put replaces layers of the policy, all or none.
func (m *manager) put(layers map[opmanager.LayerKind]opmanager.PolicyLayer) error {
	stack := m.PolicyStack()
	before := stack.State()
	for kind, layer := range layers {
		if _, err := stack.Set(kind, layer); err != nil {
			for kind := range layers {
				if _, back := stack.Set(kind, before.Layers[kind]); back != nil {
					err = errors.Join(err, back)
				}
			}
			return failure{CodeRefused, err}
		}
	}
	for _, w := range m.Warnings() {
		m.library.warn(w)
	}
	return nil
}

// Policy returns the policy in force as JSON.
func (l *Library) Policy(number uint64) (string, error) {
	m, err := l.managers.get(number)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(m.Manager.Policy())
	return string(text), err
}

// Explain says which impl serves an op and why, as text or as JSON. All ops of the catalogue are
// explained if op is "".
func (l *Library) Explain(number uint64, op string, asJSON bool) (string, error) {
	m, err := l.managers.get(number)
	if err != nil {
		return "", err
	}
	all := []opmanager.Explanation{}
	if op == "" {
		all = m.ExplainAll()
	} else {
		e, err := m.Explain(op)
		if err != nil {
			return "", err
		}
		all = append(all, e)
	}
	if asJSON {
		text, err := json.Marshal(all)
		return string(text), err
	}
	var text bytes.Buffer
	for i, e := range all {
		if i > 0 {
			text.WriteString("\n\n")
		}
		fmt.Fprint(&text, e)
	}
	return text.String(), nil
}

// Metrics returns the counters of a manager in the text format of Prometheus.
func (l *Library) Metrics(number uint64) (string, error) {
	m, err := l.managers.get(number)
	if err != nil {
		return "", err
	}
	families, err := m.gather.Gather()
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}
