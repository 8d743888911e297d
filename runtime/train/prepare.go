package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
)

// prepare reads the configuration, prepares the framework and loads the trainer class.
func (r *session) prepare(ctx context.Context) error {
	if err := r.environment(); err != nil {
		return err
	}
	if err := r.prepareBackend(ctx); err != nil {
		return err
	}
	if err := r.buildArgs(); err != nil {
		return err
	}
	if err := r.provide(); err != nil {
		return err
	}
	return r.loadTrainer()
}

// provide lets the program prepare for what the arguments ask of it. The device was chosen before.
func (r *session) provide() error {
	host, ok := r.tc.Adapter.(backend.InProcess)
	if !ok {
		return nil
	}
	before, needs := host.Needs(backend.NewArgs(r.tc.Module.Params)), host.Needs(r.tc.Args)
	if !strings.EqualFold(strings.TrimSpace(before.Device), strings.TrimSpace(needs.Device)) {
		return &configError{fmt.Errorf("%s: given %q, want %q as before the patches of phase %s, since ops are prepared for that device: set it in the experiment",
			needs.DeviceSource, needs.Device, before.Device, patch.BuildArgs)}
	}
	if r.dry || r.s.Provide == nil {
		return nil
	}
	return r.s.Provide(needs)
}

// prepareBackend makes the adapter and lets it find and prepare the framework.
func (r *session) prepareBackend(ctx context.Context) error {
	tc := r.tc
	tc.Adapter = r.factory.New()
	paths, err := tc.Adapter.SetupPath(r.s.BackendPath, tc)
	switch {
	case err == nil:
		tc.Paths = paths
	case r.dry:
		r.plan.Problems = append(r.plan.Problems, err.Error())
	default:
		return &configError{err}
	}
	for _, dir := range slices.Backward(paths.PythonPath) {
		tc.Log.Info(fmt.Sprintf("[Primus:%s] sys.path.insert → %s", tc.Framework, dir))
	}
	if early, ok := tc.Adapter.(backend.EarlyVersioner); ok {
		if version, err := early.EarlyVersion(tc); err == nil {
			tc.Version = version
		}
	}
	if d, ok := tc.Adapter.(backend.EnvDefaulter); ok {
		if err := backend.ApplyEnvDefaults(tc.Environ, tc.Framework, d.EnvDefaults(tc.Environ), r.s.DetectArch, tc.Log); err != nil {
			return err
		}
	}
	if !r.dry {
		if err := r.runHooks(ctx); err != nil {
			return err
		}
		if err := tc.Adapter.Prepare(ctx, tc); err != nil {
			return fmt.Errorf("prepare framework %s: %w", tc.Framework, err)
		}
		backend.Detail(tc.Log, fmt.Sprintf("[Primus:%s] Backend prepared", tc.Framework))
	}
	if tc.Version == "" {
		if tc.Version, err = tc.Adapter.DetectVersion(tc); err != nil {
			tc.Version = ""
			tc.Log.Info(fmt.Sprintf("[Primus:%s] version unknown, so that patches for certain versions do not run: %v", tc.Framework, err))
		}
	}
	return nil
}

func (r *session) runHooks(ctx context.Context) error {
	if len(r.factory.Hooks) == 0 {
		return nil
	}
	r.tc.Log.Info(fmt.Sprintf("[Primus:BackendSetup] Running %d setup hooks for backend '%s'.", len(r.factory.Hooks), r.tc.Framework))
	for _, hook := range r.factory.Hooks {
		if err := hook.Run(ctx, r.tc); err != nil {
			return fmt.Errorf("setup hook %q of framework %s: %w", hook.Name, r.tc.Framework, err)
		}
	}
	return nil
}

// buildArgs converts the parameters to arguments, applies patches to them and adds the remaining
// parameters.
func (r *session) buildArgs() error {
	tc := r.tc
	args, warnings, err := tc.Adapter.ConvertConfig(tc)
	var dropped []error
	for _, w := range warnings {
		if tc.PatchKey(w.Path) {
			continue
		}
		dropped = append(dropped, &document.Error{Origin: w.Origin, Path: w.Path, Problem: w.Message, Hint: w.Hint, Kind: config.ErrNoEffect})
		if !r.known(w) {
			tc.Log.Warn(w.String())
		}
	}
	if err != nil {
		return &configError{err}
	}
	tc.Args = args
	if err := r.patches(patch.BuildArgs); err != nil {
		return err
	}
	r.dump("Final backend args (after patches)", args.Map())
	added, conflicts := args.Merge(tc.Module.Params, "framework "+tc.Framework)
	for _, c := range conflicts {
		if strings.HasPrefix(c.By, "patch ") {
			tc.Log.Info("[Runtime] " + c.String())
			continue
		}
		tc.Log.Warn("[Runtime] " + c.String())
		dropped = append(dropped, fmt.Errorf("%w: %s", config.ErrNoEffect, c))
	}
	if r.s.Experiment.Strict && dropped != nil {
		return &configError{errors.Join(dropped...)}
	}
	if len(added) > 0 {
		tc.Log.Debug(fmt.Sprintf("Primus-specific parameters: (%d parameters) %s", len(added), strings.Join(added, " ")))
	}
	r.plan.Added, r.plan.Conflicts = slices.DeleteFunc(added, backend.IsRuntimeParam), conflicts
	return nil
}

// known reports whether loading the experiment has warned about the same value.
func (r *session) known(w document.Warning) bool {
	return slices.ContainsFunc(r.s.Experiment.Report.Warnings, func(known document.Warning) bool { return known.Origin == w.Origin })
}

// loadTrainer chooses the trainer class.
func (r *session) loadTrainer() error {
	tc := r.tc
	if stage, ok := tc.Args.Lookup("stage"); ok && !stage.IsNull() {
		tc.Stage = stage.Text()
	}
	class := tc.Module.TrainerClass
	if v, ok := tc.Args.Lookup("trainer_class"); class == "" && ok && !v.IsNull() {
		class = v.Text()
	}
	shown := "None"
	if class != "" {
		tc.Log.Info("[TrainRuntime] Using trainer_class: " + class)
		shown = class
	}
	backend.Detail(tc.Log, fmt.Sprintf("[TrainRuntime] Loading trainer: stage=%s, trainer_class=%s", tc.Stage, shown))
	var err error
	if r.class, err = tc.Adapter.LoadTrainer(tc.Stage, class); err != nil {
		return &configError{err}
	}
	backend.Detail(tc.Log, "[TrainRuntime] Loaded trainer class: "+r.class.Name)
	return nil
}

// dump logs every value of a mapping under its dotted name, sorted and aligned.
func (r *session) dump(title string, m *document.Map) {
	if !r.tc.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	const rule = "--------------------------------------------------------------------------------"
	leaves := flatten(m)
	width := 0
	for _, l := range leaves {
		width = max(width, len(l.path))
	}
	lines := []string{rule, fmt.Sprintf("%s: (%d parameters)", title, len(leaves)), rule}
	for _, l := range leaves {
		lines = append(lines, fmt.Sprintf("  %-*s : %s (%s)", width, l.path, secret.Shown(l.path, backend.Show(l.value)), l.value.Kind()))
	}
	for _, line := range append(lines, rule) {
		r.tc.Log.Debug(line)
	}
}

type leaf struct {
	path  string
	value document.Value
}

// flatten returns the values of a mapping that are not mappings, sorted by their dotted paths.
func flatten(m *document.Map) []leaf {
	var leaves []leaf
	var walk func(prefix string, m *document.Map)
	walk = func(prefix string, m *document.Map) {
		for key, v := range m.All() {
			if nested, ok := v.Map(); ok && nested.Len() > 0 {
				walk(prefix+key+".", nested)
				continue
			}
			leaves = append(leaves, leaf{prefix + key, v})
		}
	}
	walk("", m)
	slices.SortFunc(leaves, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return leaves
}
