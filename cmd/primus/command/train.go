package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/configs"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.uber.org/fx"
	"golang.org/x/term"
)

// trainOptions are the flags of `primus train`. Each may come from the environment as PRIMUS_<FLAG>, too.
type trainOptions struct {
	Config      string   `mapstructure:"config"`
	ConfigsDir  []string `mapstructure:"configs-dir"`
	MetricsAddr string   `mapstructure:"metrics-addr"`
	Threads     int      `mapstructure:"threads"`
}

func addTrainFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "experiment file (YAML, TOML or JSON); --exp is the same")
	flags.StringArray("configs-dir", nil, "directory of presets to look in before the embedded ones; may be repeated")
	flags.String("metrics-addr", "", "serve Prometheus metrics on this address, such as 127.0.0.1:9400")
	flags.Int("threads", 0, "CPU threads for ops; 0 means one a CPU")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if name == "exp" {
			name = "config"
		}
		return pflag.NormalizedName(name)
	})
}

func newTrainCommand(streams Streams) *cobra.Command {
	cmd := trainStage(streams, "train", "pretrain", "Train a model (the same as train pretrain)")
	cmd.AddCommand(
		trainStage(streams, "pretrain", "pretrain", "Train a model from scratch"),
		trainStage(streams, "posttrain", "posttrain", "Train a model further, with the post_trainer module"),
	)
	return cmd
}

func trainStage(streams Streams, use, stage, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use + " --config FILE [key=value…]",
		Short: short,
		Long: short + `.

Parameters come from the experiment's module preset, model preset and overrides, and
last from key=value or --key value on the command line. The run directory
<workspace>/<work_group>/<user_name>/<exp_name> receives the resolved configuration,
log, metrics.jsonl, loss.png, dispatch.json and checkpoints; a run that was stopped
goes on from its last checkpoint. load=none starts over.`,
		Example: `  primus train pretrain --config examples/native/configs/llama_2M-pretrain.yaml
  primus train pretrain --config exp.yaml train_iters=100 lr=1e-3 train_data_path=corpus/
  primus train pretrain --config exp.yaml --metrics-addr 127.0.0.1:9400
  TE_FL_PREFER=vendor primus train pretrain --config exp.yaml`,
		DisableFlagParsing: true, // what is no flag is an override, in the order given
		ValidArgsFunction:  cobra.FixedCompletions([]string{"--config", "--configs-dir", "--metrics-addr", "--threads"}, cobra.ShellCompDirectiveDefault),
	}
	addTrainFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flags, overrides := splitArgs(cmd.Flags(), args)
		if err := cmd.Flags().Parse(flags); err != nil {
			if err == pflag.ErrHelp {
				return cmd.Help()
			}
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		opts, err := readTrainOptions(cmd.Flags())
		if err != nil {
			return err
		}
		if opts.Config == "" {
			return usageError{fmt.Errorf("no experiment given: want --config FILE; see %s --help", cmd.CommandPath())}
		}
		return runTrain(cmd.Context(), streams, stage, opts, overrides)
	}
	return cmd
}

// splitArgs parts the tokens that are flags of the command, with their values, from overrides.
func splitArgs(flags *pflag.FlagSet, args []string) (known, overrides []string) {
	for i := 0; i < len(args); i++ {
		name, _, inline := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		isFlag := strings.HasPrefix(args[i], "--") && flags.Lookup(name) != nil
		switch {
		case args[i] == "--help" || args[i] == "-h":
			known = append(known, "--help")
		case !isFlag:
			overrides = append(overrides, args[i])
		case !inline && i+1 < len(args):
			known = append(known, args[i], args[i+1])
			i++
		default:
			known = append(known, args[i])
		}
	}
	return known, overrides
}

func readTrainOptions(flags *pflag.FlagSet) (trainOptions, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	v.SetEnvPrefix("primus")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	var opts trainOptions
	for _, name := range []string{"config", "configs-dir", "metrics-addr", "threads"} {
		if err := v.BindPFlag(name, flags.Lookup(name)); err != nil {
			return opts, err
		}
	}
	if err := v.UnmarshalExact(&opts); err != nil {
		return opts, usageError{fmt.Errorf("read flags and PRIMUS_* variables: %w", err)}
	}
	if opts.Threads < 0 {
		return opts, usageError{fmt.Errorf("--threads: got %d, want a number >= 0", opts.Threads)}
	}
	return opts, nil
}

func runTrain(ctx context.Context, streams Streams, stage string, opts trainOptions, overrides []string) error {
	moduleName := map[string]string{"pretrain": "pre_trainer", "posttrain": "post_trainer"}[stage]
	experiment, err := loadExperiment(opts, moduleName, overrides)
	if err != nil {
		return err
	}
	opLevel, err := opmanager.ParseLogLevel(os.Getenv(opmanager.EnvLogLevel))
	if err != nil {
		return usageError{err}
	}
	out := &console{out: streams.Err}
	logFile := &backend.LogFile{}
	fileHandler := newLineHandler(logFile, slog.LevelDebug)
	log := slog.New(slog.NewMultiHandler(newLineHandler(out, slog.LevelInfo), fileHandler))
	for _, w := range experiment.Report.Warnings {
		log.Warn(w.String())
	}
	for _, c := range experiment.Report.Collisions {
		log.Warn(c.String())
	}
	show := &progress{streams: streams, console: out, log: log}
	if file, ok := streams.Err.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		show.bar, show.log = true, slog.New(fileHandler)
	}

	set := appConfig{
		threads: opts.Threads, timing: true, log: log, logFile: logFile,
		opLog: slog.NewMultiHandler(newLineHandler(out, opLevel), fileHandler),
	}
	var settings train.Settings
	run := func() error {
		settings.Experiment, settings.ModuleName, settings.Stage = experiment, moduleName, stage
		settings.Log, settings.LogFile = log, logFile
		err := train.Run(ctx, settings)
		out.setBar(nil)
		return err
	}
	return runApp(ctx, run, core(set), metricsOptions(opts.MetricsAddr, log), fx.Populate(&settings.Manager, &settings.Device, &settings.Backends),
		fx.Invoke(func(m *opmanager.Manager, t *metrics.Training, d *metrics.Dispatch) {
			d.Watch(m)
			show.manager = m
			settings.Observer = backend.Observers{t, show}
		}))
}

func loadExperiment(opts trainOptions, module string, overrides []string) (*config.Experiment, error) {
	var roots []config.Root
	for _, dir := range opts.ConfigsDir {
		root, err := config.DirRoot(dir)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	roots = append(roots, config.Root{Name: "embedded presets", FS: configs.FS()})
	return config.LoadExperiment(opts.Config, config.Options{Presets: roots, Overrides: overrides, Module: module})
}

// metricsOptions wires the collectors and, with an address, their server.
func metricsOptions(addr string, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.Provide(
			prometheus.NewRegistry,
			func(r *prometheus.Registry) prometheus.Registerer { return r },
			metrics.NewDispatch, metrics.NewTraining,
			fx.Annotate(func(d *metrics.Dispatch) opmanager.Listener { return d }, fx.ResultTags(listenerGroup)),
		),
		fx.Invoke(func(lc fx.Lifecycle, reg *prometheus.Registry) error {
			if addr == "" {
				return nil
			}
			var server *metrics.Server
			lc.Append(fx.Hook{
				OnStart: func(context.Context) (err error) {
					if server, err = metrics.Serve(addr, reg); err == nil {
						log.Info(fmt.Sprintf("metrics on http://%s/metrics", server.Addr()))
					}
					return err
				},
				OnStop: func(ctx context.Context) error { return server.Close(ctx) },
			})
			return nil
		}),
	)
}
