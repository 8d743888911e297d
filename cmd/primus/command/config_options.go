package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/configs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// presetOptions are the flags of commands that read experiments.
type presetOptions struct {
	configsDirs []string
	strict      bool
	extras      []fx.Option // of Main
}

func (o *presetOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.configsDirs, "configs-dir", nil, "look for presets in `DIR` before the embedded ones; may be repeated")
	flags.BoolVar(&o.strict, "strict-config", false, "a value of the experiment, its presets or a TE_FL_ variable that has no effect is an error")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if name == "exp" {
			name = "config"
		}
		return pflag.NormalizedName(name)
	})
}

// settings returns how experiments are to be loaded: presets of the user's directories come before the embedded ones.
func (o *presetOptions) settings() (config.Options, error) {
	var roots []config.Root
	for _, dir := range o.configsDirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return config.Options{}, usageError{fmt.Errorf("--configs-dir: %q is no directory, want one that holds modules, models or platforms", dir)}
		}
		root, err := config.DirRoot(dir)
		if err != nil {
			return config.Options{}, err
		}
		roots = append(roots, root)
	}
	roots = append(roots, config.Root{Name: "embedded presets", FS: configs.FS()})
	loaded, err := loadFormats(o.extras)
	return config.Options{Formats: loaded, Presets: roots, Strict: o.strict}, err
}

// experimentOptions are the flags of commands that load one experiment.
type experimentOptions struct {
	presetOptions
	config string
	export string
}

func (o *experimentOptions) addFlags(flags *pflag.FlagSet) {
	o.presetOptions.addFlags(flags)
	flags.StringVar(&o.config, "config", "", "the experiment: a YAML, TOML or JSON `FILE`; --exp is the same")
	flags.StringVar(&o.export, "export-config", "", "write the resolved experiment to a YAML, TOML or JSON `FILE`, which loads back")
}

// check returns the first mistake in the options.
func (o *experimentOptions) check(cmd *cobra.Command, overrides []string) error {
	if o.config == "" {
		hint := ""
		for _, token := range overrides {
			if name, value, ok := strings.Cut(strings.TrimLeft(token, "-"), "="); ok && (name == "config" || name == "exp") {
				hint = "; did you mean --config " + value + "?"
			}
		}
		return usagef(cmd, "no experiment given: want --config FILE, PRIMUS_CONFIG or config in primus.yaml%s", hint)
	}
	if o.export == "" {
		return nil
	}
	loaded, err := loadFormats(o.extras)
	if err != nil {
		return err
	}
	if _, err := loaded.RendererOf(o.export); err != nil {
		return usagef(cmd, "--export-config: got %q, want %s", o.export, wants(cmd.Flags().Lookup("export-config")))
	}
	return nil
}

// load reads the experiment with its presets, and writes it resolved where that is asked for.
func (o *experimentOptions) load(module string, overrides []string) (*config.Experiment, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	settings.Overrides, settings.Module = overrides, module
	experiment, err := config.LoadExperiment(o.config, settings)
	if err != nil || o.export == "" {
		return experiment, err
	}
	if err := exportExperiment(o.export, settings.Formats, experiment); err != nil {
		return nil, fmt.Errorf("export the configuration: %w", err)
	}
	return experiment, nil
}

// exportExperiment writes a resolved experiment; the file is there as a whole or not at all.
func exportExperiment(file string, loaded *document.Formats, experiment *config.Experiment) error {
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

// logReport says what loading an experiment noticed.
func logReport(log *slog.Logger, report config.Report) {
	for _, w := range report.Warnings {
		log.Warn(w.String())
	}
	for _, c := range report.Collisions {
		log.Warn(c.String())
	}
}

// withoutVariable marks flags that no PRIMUS_* variable sets.
func withoutVariable(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.Lookup(name).Annotations = map[string][]string{variableOnly: nil}
	}
}
