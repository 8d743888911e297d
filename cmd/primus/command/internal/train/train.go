// Package train is the command that trains: its flags, the dry run, the progress of a run and the
// summary at its end.
package train

import (
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/cmd/primus/command/internal/train/firstrun"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Options are the flags of `primus train`.
type Options struct {
	experiments.TrainingOptions
	metrics   service.MetricsFlags
	serve     service.Flags
	manifest  string
	run       experiments.RunOptions
	fleet     service.FleetFlags
	output    cli.OutputFormat // of a dry run
	ranks     uint
	restarts  uint
	logFormat string
	nodes     int      // as given on the command line
	line      []string // the command line of a rank
	note      string   // for the log
	plot      bool
	time      time.Duration // for a text
	taps      tapFlags

	recording *recording.Settings // from taps; nil without
}

// AddFlags gives a command the flags of train.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.metrics.AddFlags(flags)
	o.serve.AddFlags(flags, "serve", "", "serve-")
	flags.StringVar(&o.manifest, "require-manifest", "", "refuse to train when dispatch differs from the manifest.json in `FILE`")
	o.run.AddFlags(flags)
	o.fleet.AddFlags(flags)
	o.TrainingOptions.AddFlags(flags)
	flags.StringVar(&o.logFormat, "log-format", "", "`FORMAT` of log lines: text, or json for objects with run and rank; the default is that of TEFL_LOG_FORMAT, or text")
	cli.WithoutVariable(flags, "log-format")
	o.taps.addFlags(flags)
	flags.BoolVar(&o.plot, "plot", false, "draw the losses as text while the run goes on; without a terminal, once before the summary")
	flags.UintVar(&o.ranks, "nproc", 0, "train in `N` processes of this machine, as the ranks of one run; 0 trains in this one")
	flags.UintVar(&o.restarts, "max-restarts", 0, "start the ranks again from the last checkpoint after a failure, `N` times at most")
}

// New returns the command `primus train`.
func New(prog cli.Program) *cobra.Command {
	cmd := newStageCommand(prog, "train", experiments.Pretrain, "Train a model (the same as train pretrain)", pretrainExamples("train"))
	cmd.AddCommand(
		newStageCommand(prog, "pretrain", experiments.Pretrain, "Train a model from scratch", pretrainExamples("train pretrain")),
		newStageCommand(prog, "posttrain", experiments.Posttrain, posttrainShort, posttrainExamples),
	)
	return cmd
}

// pretrainExamples are those of a command that trains from scratch.
func pretrainExamples(command string) string {
	return strings.ReplaceAll(`  primus TRAIN
  primus TRAIN notes --time 10m
  primus TRAIN --config llama_6M-pretrain exp_name=mine train_iters=50
  primus TRAIN --config exp.yaml
  primus TRAIN --config exp.yaml train_iters=100 lr=1e-3 train_data_path=corpus/
  primus TRAIN --config exp.yaml --metrics-addr 127.0.0.1:9400
  primus TRAIN --config exp.yaml --serve 127.0.0.1:9400 --serve-token-file tokens
  primus TRAIN --config exp.yaml --policy policy.yaml --deny-vendors acme
  primus TRAIN --config exp.yaml --nproc 2 --max-restarts 3
  primus TRAIN --config exp.yaml --dry-run
  TE_FL_PREFER=vendor primus TRAIN --config exp.yaml`, "TRAIN", command)
}

// The help of posttrain; a test compares what it says with the backends.
const (
	posttrainShort = `Train a model further: the post_trainer module of the experiment.
Its stages are sft and dpo with the backend native, and those of the Python frameworks
megatron and megatron_bridge. load_hf=DIR names the weights to begin with`
	posttrainExamples = `  primus train posttrain --config llama_2M-sft.yaml
  primus train posttrain --config exp.yaml load_hf=output/local/local/base lora_rank=8
  primus train posttrain --config exp.yaml stage=sft --dry-run`
)

func newStageCommand(prog cli.Program, use string, s experiments.Stage, about, examples string) *cobra.Command {
	var opts Options
	opts.Program = prog
	short, _, _ := strings.Cut(about, "\n")
	usage := " --config FILE [key=value…]"
	if s == experiments.Pretrain {
		usage = " [--config FILE | TEXT…] [key=value…]"
	}
	cmd := &cobra.Command{
		Use:     use + usage,
		Short:   strings.TrimSuffix(short, "."),
		Long:    about + ".\n\n" + trainDetails,
		Example: examples,
	}
	opts.AddFlags(cmd.Flags())
	if s == experiments.Pretrain {
		experiments.TakeTexts(cmd)
		cmd.Flags().DurationVar(&opts.time, "time", firstrun.DefaultTime, "with TEXT, train for about this `TIME`")
		cli.WithoutVariable(cmd.Flags(), "time")
	}
	opts.output.AddFlag(cmd)
	experiments.TakeOverrides(prog, cmd, s.Module, func(cmd *cobra.Command, overrides []string) error {
		texts := experiments.Texts(cmd)
		switch {
		case len(texts) > 0 && opts.Config != "":
			return cli.Usagef(cmd, "given --config %s and the text %s, want one of them; train_data_path=%[2]s gives the experiment another text", opts.Config, texts[0])
		case len(texts) == 0 && cmd.Flags().Changed("time"):
			return cli.Usagef(cmd, "--time is for a text, as in primus train book.txt --time 10m; the steps of an experiment are train_iters=N")
		case len(texts) > 0:
			opts.Config = texts[0] // until there is an experiment
		case opts.Config == "" && s == experiments.Pretrain && !namesConfig(overrides):
			if err := cmd.Flags().Set("config", firstExample); err != nil { // for other processes of the run, too
				return err
			}
			opts.note = "no --config: training the example " + firstExample + " (primus examples list)"
		}
		if err := opts.check(cmd, overrides); err != nil {
			return err
		}
		opts.line, opts.nodes = lineOfRank(cmd, overrides), opts.run.Launch.Nodes
		if len(texts) > 0 {
			return trainTexts(cmd, prog, s, opts, overrides)
		}
		return runStage(cmd, prog, s, opts, overrides)
	})
	return cmd
}

// runStage trains here or elsewhere, or says what training would do.
func runStage(cmd *cobra.Command, prog cli.Program, s experiments.Stage, opts Options, overrides []string) error {
	elsewhere, _, err := launch.Chain(opts.run.Launch.Launcher)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	settings, err := experiments.LoadLauncher(cmd.Context(), prog, &opts.run.Launch, opts.run.LauncherFile, opts.run.LauncherOptions)
	if err != nil {
		return err
	}
	files, err := experiments.Files(opts.Config)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	several := len(files) > 1 || files[0] != opts.Config
	switch {
	case !opts.run.DryRun && (several || opts.output == cli.OutputJSON):
		return cli.Usagef(cmd, "several experiments and -o json are for --dry-run")
	case len(elsewhere) > 0 && several:
		return cli.Usagef(cmd, "--launcher %s: given a pattern of experiments, want one", opts.run.Launch.Launcher)
	case several || opts.output == cli.OutputJSON:
		return dryRunMany(cmd.Context(), prog, s, &opts, files, overrides)
	case len(elsewhere) > 0:
		return runElsewhere(cmd, prog, s, opts, overrides, settings, elsewhere)
	}
	return runTrain(cmd.Context(), prog, s, opts, overrides)
}

// trainDetails is the help that all commands of train share.
const trainDetails = `--config names a file, an example that comes with the program (primus examples list), or
- for standard input. Without it, training from scratch takes the example
llama_2M-pretrain, or TEXT: files and folders of text, for which it makes an experiment
that takes about --time on this machine, as primus init does, and trains it.

Parameters come from the experiment's module preset, model preset and overrides, and
last from key=value, --key=value or --key value on the command line. The run directory
<workspace>/<work_group>/<user_name>/<exp_name> receives the resolved configuration,
log, metrics.jsonl, loss.png, manifest.json, dispatch.json and checkpoints. A run that
was stopped continues from its last checkpoint; load=none starts over and keeps the
earlier run in previous/. Another corpus, model or seed needs another exp_name, which
may be given here like a parameter: exp_name=NAME.

An interrupt, SIGTERM, SIGHUP and a closed pipe finish the current step, save and exit
with 130; a second one exits at once. A step or an evaluation that takes longer than
half of --grace is abandoned, and the step before it is saved. Whatever else ends a run
saves its last step first, unless its weights are at fault.

The policy that chooses between implementations comes from --policy FILE, then te_fl_*
parameters or the dispatch block of the experiment, then the TE_FL_* variables, then
--prefer and the like; later ones win. The file is followed while training runs.
manifest.json lists which implementation serves each op and the fingerprint of the
policy; --require-manifest refuses a run that differs from it.

With --fleet the run is listed in etcd while it trains, and follows the policy of the
fleet, which comes between policy file and experiment (primus fleet --help). Training
never waits for etcd.

Patches that the experiment enables are applied (primus patches plan); --patches, or
PRIMUS_PATCHES, permits only some of them. --dry-run prints what would be done and does
none of it; with -o json, and for a pattern of experiments such as --config
'configs/**/*.yaml', it prints the processes that each would start.

Flags may also be given as PRIMUS_THREADS, PRIMUS_METRICS_ADDR and so on, or in a file
primus.yaml (primus config cli).`

// firstExample is what is trained when nothing else is asked for.
const firstExample = "llama_2M-pretrain"

// namesConfig reports whether config or exp is among the parameters, where it is a mistake.
func namesConfig(overrides []string) bool {
	return slices.ContainsFunc(overrides, func(token string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(token, "-"), "=")
		return name == "config" || name == "exp"
	})
}

// check returns the first mistake in the options.
func (o *Options) check(cmd *cobra.Command, overrides []string) error {
	if err := o.TrainingOptions.Check(cmd, overrides); err != nil {
		return err
	}
	if err := o.metrics.Check(cmd); err != nil {
		return err
	}
	if _, err := o.format(); err != nil {
		return cli.Usagef(cmd, "%w", err)
	}
	if o.Config == experiments.StandardInput && (o.ranks > 0 || o.restarts > 0 || o.run.Launch.Launcher != "" || o.run.Launch.Nodes > 1) {
		return cli.Usagef(cmd, "--config -: other processes of the run cannot read standard input; write the experiment to a file")
	}
	if o.run.Grace < 0 {
		return cli.Usagef(cmd, "--grace: given %v, want %s", o.run.Grace, cli.Wants(cmd.Flags().Lookup("grace")))
	}
	if err := o.run.CheckWaits(cmd); err != nil {
		return err
	}
	l := o.run.Launch
	for _, given := range []struct {
		flag string
		n    int
	}{{"nodes", l.Nodes}, {"node-rank", l.NodeRank}, {"nproc-per-node", l.PerNode}, {"master-port", l.MasterPort}} {
		if given.n < 0 {
			return cli.Usagef(cmd, "--%s: given %d, want %s", given.flag, given.n, cli.Wants(cmd.Flags().Lookup(given.flag)))
		}
	}
	if err := o.fleet.Check(cmd); err != nil {
		return err
	}
	var err error
	if o.recording, err = o.taps.settings(cmd); err != nil {
		return err
	}
	if o.serve.Addr != "" {
		if err := o.serve.Check(); err != nil {
			return cli.Usagef(cmd, "--serve: %w", err)
		}
	}
	return nil
}
