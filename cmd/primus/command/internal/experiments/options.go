// Package experiments reads the experiment that a command line names: the flags, overrides and
// their completion, and plans its run.
package experiments

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/configs"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// PresetOptions are the flags of commands that read experiments.
type PresetOptions struct {
	ConfigsDirs []string
	strict      bool
	flags       *pflag.FlagSet
	Program     cli.Program

	input    []byte                    // of an experiment that is read from standard input
	settings map[string]config.Options // by the presets of the checkout that an experiment lies in
}

// AddFlags gives a command the flags.
func (o *PresetOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.ConfigsDirs, "configs-dir", nil, "look for presets in `DIR` first, then in the checkout of Primus that the experiment is in; may be repeated")
	o.flags = flags
	flags.BoolVar(&o.strict, "strict-config", false, "a value of the experiment, its presets or a TE_FL_ variable that has no effect is an error; false also accepts parameters that the native backend does not have")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if name == "exp" {
			name = "config"
		}
		return pflag.NormalizedName(name)
	})
}

// settingsFor returns how the experiment in file is to be loaded: presets of the user's directories
// come first, then those of the checkout of Primus that the file lies in, then the embedded ones.
// Experiments with the same presets share what was read of them.
func (o *PresetOptions) settingsFor(file string) (config.Options, error) {
	checkout := checkoutPresets(file)
	if settings, ok := o.settings[checkout]; ok {
		return settings, nil
	}
	dirs := o.ConfigsDirs
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return config.Options{}, cli.UsageError{Err: fmt.Errorf("--configs-dir: %q is not a directory, want one that holds modules, models or platforms", dir)}
		}
	}
	if checkout != "" {
		dirs = append(slices.Clip(dirs), checkout)
	}
	var roots []config.Root
	for _, dir := range dirs {
		root, err := config.DirRoot(dir)
		if err != nil {
			return config.Options{}, err
		}
		roots = append(roots, root)
	}
	roots = append(roots, config.Root{Name: "embedded presets", FS: configs.FS()})
	loaded, err := graph.LoadFormats(o.Program.Extras)
	if err != nil {
		return config.Options{}, err
	}
	settings := config.Options{Formats: loaded, Presets: roots, Strict: o.strict, Lenient: o.flags != nil && o.flags.Changed("strict-config") && !o.strict, Cache: &config.Cache{}}
	if o.settings == nil {
		o.settings = map[string]config.Options{}
	}
	o.settings[checkout] = settings
	return settings, nil
}

// checkoutPresets returns the directory of the presets of the checkout of Primus that a file lies
// in, as seen from the working directory; "" outside of one.
func checkoutPresets(file string) string {
	checkout := config.Checkout(file)
	if checkout == "" {
		return ""
	}
	presets := filepath.Join(checkout, "primus", "configs")
	if working, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(working, presets); err == nil && filepath.IsLocal(relative) {
			return relative
		}
	}
	return presets
}

// Checkout returns the checkout of Primus that the experiment lies in, "" for none.
func (o *Options) Checkout() string {
	presets := checkoutPresets(o.Config)
	if presets == "" {
		return ""
	}
	return filepath.Join(presets, "..", "..")
}

// Options are the flags of commands that load one experiment.
type Options struct {
	PresetOptions
	Config string
	export string
}

// AddFlags gives a command the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.PresetOptions.AddFlags(flags)
	flags.StringVar(&o.Config, "config", "", "the experiment: a YAML, TOML or JSON `FILE`, the name of an example (primus examples list), or - for standard input; --exp is the same")
	flags.StringVar(&o.export, "export-config", "", "write the resolved experiment to a YAML, TOML or JSON `FILE`, which can be loaded again")
}

// Check returns the first mistake in the options.
func (o *Options) Check(cmd *cobra.Command, overrides []string) error {
	if o.Config == "" {
		hint := ""
		for _, token := range overrides {
			if name, value, ok := strings.Cut(strings.TrimLeft(token, "-"), "="); ok && (name == "config" || name == "exp") {
				hint = "; did you mean --config " + value + "?"
			}
		}
		return cli.Usagef(cmd, "no experiment given: want --config FILE, PRIMUS_CONFIG or config in primus.yaml%s", hint)
	}
	if o.export == "" {
		return nil
	}
	loaded, err := graph.LoadFormats(o.Program.Extras)
	if err != nil {
		return err
	}
	if _, err := loaded.RendererOf(o.export); err != nil {
		return cli.Usagef(cmd, "--export-config: given %q, want %s", o.export, cli.Wants(cmd.Flags().Lookup("export-config")))
	}
	return nil
}

// Load reads the experiment with its presets, and writes it resolved where that is asked for.
func (o *Options) Load(ctx context.Context, module string, overrides []string) (*config.Experiment, error) {
	var loaded *document.Formats
	experiment, err := o.Read(ctx, o.Config, func(s *config.Options) {
		s.Overrides, s.Module, s.Cache = overrides, module, nil
		loaded = s.Formats
	})
	if err != nil || o.export == "" {
		return experiment, err
	}
	if err := Export(o.export, loaded, experiment); err != nil {
		return nil, fmt.Errorf("export the configuration: %w", err)
	}
	return experiment, nil
}

// Export writes a resolved experiment. The file is complete or not written at all.
func Export(file string, loaded *document.Formats, experiment *config.Experiment) error {
	format, err := loaded.RendererOf(file)
	if err != nil {
		return err
	}
	text, err := experiment.ExportAs(format)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return durable.Explain(err)
	}
	return durable.WriteFile(file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// LogReport logs the warnings of loading an experiment.
func LogReport(log *slog.Logger, report config.Report) {
	for _, w := range report.Warnings {
		log.Warn(w.String())
	}
	for _, c := range report.Collisions {
		log.Warn(c.String())
	}
}

// LogStandIn logs that an experiment lacks the module of a stage, and which one is used instead.
func LogStandIn(log *slog.Logger, e *config.Experiment, wanted string, taken *config.Module) {
	if taken.Name != wanted {
		log.Warn("the experiment has no module "+wanted+", so this is about "+taken.Name, "file", e.File)
	}
}
