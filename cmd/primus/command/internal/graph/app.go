// Package graph composes the program with fx: what is compiled in, what another program adds, the
// plugins, the registry of ops and the op manager. Commands build it with a Config and take from it
// what they need.
package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/vendors/plugin/pluginset"
	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
)

// Config is what a command decides about the graph.
type Config struct {
	Threads     int          // 0 means one per CPU
	Log         *slog.Logger // of the program
	OpLog       slog.Handler // of the op manager; nil keeps it silent
	Policy      dispatch.Sources
	ListPlugins bool              // plugins that cannot be used are only listed
	PluginsOf   *policyfile.Layer // a policy file whose plugins are loaded though it does not apply; nil for none
	Device      DeviceName        // what a flag asks for
	Module      *config.Module    // what is trained, which may ask for a device; nil for nothing
	LocalRank   int               // of this process among those of its node
	Extras      []fx.Option       // of Main

	// Interrupted reports whether the process was asked to end. It may be nil.
	Interrupted func() bool

	// ProbeDevices finds out whether the impls for devices can run, which opens drivers.
	ProbeDevices bool
}

// DeviceName names a device and says where the name comes from. The zero DeviceName leaves the
// choice to STEPMESH_BACKEND.
type DeviceName struct{ Name, Source string }

// ofRank returns the name of the device of a process. Where several processes train on the devices
// of a node and the name has no number, each takes the one with its own number.
func (d DeviceName) ofRank(local int) string {
	if local == 0 || strings.Contains(d.Name, ":") || strings.EqualFold(strings.TrimSpace(d.Name), "cpu") {
		return d.Name
	}
	return fmt.Sprintf("%s:%d", d.Name, local)
}

// device returns the device that a flag or the module asks for. Package train ends a run whose
// patches change the latter.
func (c Config) device(backends *backend.Registry) DeviceName {
	if c.Device.Name != "" || c.Module == nil {
		return c.Device
	}
	factory, err := backends.Get(c.Module.Framework)
	if err != nil {
		return DeviceName{} // the run ends with this error
	}
	host, ok := factory.New().(backend.InProcess)
	if !ok {
		return DeviceName{}
	}
	needs := host.Needs(backend.NewArgs(c.Module.Params))
	return DeviceName{needs.Device, needs.DeviceSource}
}

// Core wires what every command with an op manager needs.
func Core(set Config) fx.Option {
	return fx.Options(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(set),
		fx.Provide(
			newDeviceInUse, newPool, newExec, newPlugins, newRegistry, newPolicy, newManager, newSourceList, selectDevice,
			fx.Annotate(newExtraSources, fx.ParamTags(`group:"extra_sources"`)),
			fx.Annotate(newDevices, fx.ParamTags(Devices)),
			fx.Annotate(backend.NewRegistry, fx.ParamTags(Backends)),
			fx.Annotate(newFormats, fx.ParamTags(Formats)),
			fx.Annotate(newPatches, fx.ParamTags(Patches)),
		),
		opSources(), backendModules(), deviceBackends(), fileFormats(), fx.Options(set.Extras...),
	)
}

func newPool(set Config, lc fx.Lifecycle) *parallel.Pool {
	pool := parallel.New(cmp.Or(set.Threads, goruntime.GOMAXPROCS(0)))
	lc.Append(fx.StopHook(pool.Close))
	return pool
}

func newExec(pool *parallel.Pool) *opregistry.Exec {
	return opregistry.NewExec(pool, device.DefaultStream)
}

// registryParams collects the sources of ops; their order in the group is random.
type registryParams struct {
	fx.In
	Sources []opregistry.Source `group:"op_sources"`
	Extras  []extraSource
	Set     Config
	Policy  oppolicy.Policy
	Plugins *pluginset.Set
}

func newRegistry(p registryParams) (*opregistry.Registry, error) {
	reg := opregistry.NewRegistry()
	if err := reg.Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}); err != nil {
		return nil, err
	}
	if err := sortSources(p.Sources); err != nil {
		return nil, err
	}
	for _, src := range p.Sources {
		if err := reg.Register(src); err != nil {
			return nil, err
		}
	}
	for _, extra := range p.Extras {
		if err := reg.Register(extra.Source); err != nil {
			return nil, fmt.Errorf("module %s: %w", extra.module, err)
		}
	}
	return reg, registerPlugins(p.Plugins, reg, p.Policy, p.Set)
}

type managerParams struct {
	fx.In
	Set       Config
	Registry  *opregistry.Registry
	Layers    opmanager.PolicyLayers
	Exec      *opregistry.Exec
	Listeners []opmanager.Listener `group:"listeners"`
}

func newManager(p managerParams, lc fx.Lifecycle) (*opmanager.Manager, error) {
	layers, err := p.Set.Policy.CheckTuning(p.Layers, p.Registry.Snapshot(), p.Exec.Pool().Workers(), p.Set.Log)
	if err != nil {
		return nil, err
	}
	if p.Set.OpLog != nil {
		p.Listeners = append(p.Listeners, opmanager.NewLogListener(slog.New(p.Set.OpLog)))
	}
	m := opmanager.New(p.Registry, oppolicy.Default(), opmanager.Settings{Exec: p.Exec, Listeners: p.Listeners, Layers: layers})
	lc.Append(fx.StopHook(m.Close))
	if p.Set.OpLog != nil {
		logUnusable(p.Set.Log, m)
	}
	for _, w := range m.Warnings() {
		p.Set.Log.Warn(w)
	}
	return m, nil
}

// logUnusable warns of each impl that the policy asks for and that cannot serve calls. For other
// impls that cannot run on this machine the reason is logged as a detail.
func logUnusable(log *slog.Logger, m *opmanager.Manager) {
	logged := map[string]bool{}
	for _, u := range m.Unusable() {
		logged[u.ID] = true
		log.Warn(u.String())
	}
	for _, e := range m.ExplainAll() {
		for _, s := range e.Rejected {
			if s.Available || logged[s.ID] {
				continue
			}
			logged[s.ID] = true
			backend.Detail(log, fmt.Sprintf("Implementation '%s' is not available: %s", s.ID, strings.TrimPrefix(s.Reason, "unavailable: ")))
		}
	}
}

// newExtraSources returns the sources of other modules by name; their order in the group is random.
func newExtraSources(sources []extraSource) []extraSource {
	slices.SortFunc(sources, func(a, b extraSource) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.module, b.module))
	})
	return sources
}

// sortSources orders sources by name. Two of one name are an error.
func sortSources(sources []opregistry.Source) error {
	slices.SortFunc(sources, func(a, b opregistry.Source) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(describeSource(a), describeSource(b)))
	})
	for i := 1; i < len(sources); i++ {
		if a, b := sources[i-1], sources[i]; a.Name == b.Name {
			return fmt.Errorf("two sources of ops named %q: %s and %s; rename one", a.Name, describeSource(a), describeSource(b))
		}
	}
	return nil
}

// describeSource describes a source so that it differs from another one of the same name.
func describeSource(s opregistry.Source) string {
	text := "one without impls"
	if len(s.Impls) > 0 {
		text = fmt.Sprintf("one with %s, first %q", plaintext.Quantity(len(s.Impls), "impl", "impls"), s.Impls[0].ID)
	}
	if s.Version != "" {
		text += ", version " + s.Version
	}
	return text
}

// newDevices registers the device backends of the group, whose order is random, and closes them at
// the end.
func newDevices(backends []device.Backend, lc fx.Lifecycle) (*device.Registry, error) {
	reg := device.NewRegistry()
	slices.SortFunc(backends, func(a, b device.Backend) int {
		return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(fmt.Sprintf("%T", a), fmt.Sprintf("%T", b)))
	})
	for _, b := range backends {
		if closer, ok := b.(io.Closer); ok {
			lc.Append(fx.StopHook(func() error {
				if err := closer.Close(); !errors.Is(err, device.ErrLost) { // the run has failed with that
					return err
				}
				return nil
			}))
		}
		if err := reg.Register(b.Name(), b); err != nil {
			return nil, err
		}
	}
	return reg, nil
}

// deviceInUse is the device that this process computes on, nil if it computes nothing. It is known
// once the device.Backend of the graph is built, which comes before the op manager.
type deviceInUse struct{ device device.Backend }

func newDeviceInUse() *deviceInUse { return &deviceInUse{} }

func selectDevice(reg *device.Registry, backends *backend.Registry, set Config, use *deviceInUse) (device.Backend, error) {
	var s device.Selection
	var err error
	if d := set.device(backends); d.Name != "" {
		own := d.ofRank(set.LocalRank)
		s, err = device.Choose(reg, d.Source, own)
		if own != d.Name && errors.Is(err, device.ErrNoDevice) {
			err = fmt.Errorf("%w; each rank of a node takes a device of its own, and %s:0 lets all share one", err, d.Name)
		}
	} else {
		s, err = device.Select(reg, os.LookupEnv)
	}
	if errors.Is(err, device.ErrNotFound) || errors.Is(err, device.ErrNoDevice) || errors.Is(err, device.ErrConflict) {
		return nil, cli.UsageError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	if s.Note != "" {
		backend.Detail(set.Log, s.Note)
	}
	use.device = s.Backend
	return s.Backend, nil
}

// newPatches returns the patches of all backends; their order in the group is random.
func newPatches(patches []patch.Patch, backends *backend.Registry) (*patch.Set, error) {
	set, err := patch.Sorted(patches)
	if err != nil {
		return nil, err
	}
	return set, set.Check(backends.Names())
}

// OpsParams are what commands that look at ops need of the graph. They are built in the order of
// the fields: values that depend on the environment, which may be wrong, come before those that
// have to be closed.
type OpsParams struct {
	fx.In
	Policy   oppolicy.Policy
	Registry *opregistry.Registry
	Manager  *opmanager.Manager
}

// OpsGraph wires what commands that look at ops need and passes it to a function.
func OpsGraph(set Config, wire func(OpsParams)) fx.Option {
	return fx.Options(Core(set), fx.Invoke(wire))
}

// WithManager runs f with an op manager over everything that is compiled in, under a policy.
func WithManager(ctx context.Context, prog cli.Program, policy dispatch.Sources, f func(*opmanager.Manager, *opregistry.Snapshot) error) error {
	return WithManagerOf(ctx, prog, Config{Policy: policy}, func(m *opmanager.Manager, snap *opregistry.Snapshot, _ device.Backend) error {
		return f(m, snap)
	})
}

// WithManagerOf is WithManager for a Config, of which it sets the log and the extras. The device is
// that of the Config, nil without one.
func WithManagerOf(ctx context.Context, prog cli.Program, set Config, f func(*opmanager.Manager, *opregistry.Snapshot, device.Backend) error) error {
	var p OpsParams
	var dev device.Backend
	set.Log, set.Extras = slog.New(prog.Lines(prog.Err, slog.LevelWarn)), prog.Extras
	var options []fx.Option
	if set.Device.Name != "" { // it may not be there, so it comes before what has to be closed
		options = append(options, fx.Populate(&dev))
	}
	options = append(options, OpsGraph(set, func(built OpsParams) { p = built }))
	return Run(ctx, func() error { return f(p.Manager, p.Registry.Snapshot(), dev) }, options...)
}

// Run builds the graph, starts it, runs f unless ctx has ended, and stops it. An interrupt does not
// end the start: fx would then leave running what it has started.
func Run(ctx context.Context, f func() error, options ...fx.Option) (err error) {
	app := fx.New(append(options, fx.Supply(fx.Annotate(ctx, fx.As(new(context.Context)))))...)
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StartTimeout())
	defer cancel()
	if err := app.Start(starting); err != nil {
		return cause(err)
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
		defer cancel()
		if stopErr := app.Stop(stopping); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("shut down: %w", stopErr))
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

// cause returns the error of a constructor of the graph, without the path to it. A fault of the
// graph itself, such as two constructors of one type, keeps the path, which names them.
func cause(err error) error {
	root := dig.RootCause(err)
	if _, ofGraph := errors.AsType[dig.Error](root); !ofGraph {
		return root
	}
	whole, _ := errors.AsType[dig.Error](err)
	return whole
}

func newPolicy(ctx context.Context, set Config) (opmanager.PolicyLayers, oppolicy.Policy, *policyfile.Layer, policyfile.Plugins, error) {
	layers, file, err := set.Policy.Load(ctx)
	plugins, pluginsErr := set.Policy.Plugins(cmp.Or(file, set.PluginsOf))
	return layers, layers.Policy(), file, plugins, errors.Join(err, pluginsErr, set.Policy.CheckVariables(set.Log))
}
