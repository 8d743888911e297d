package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/native/divergence"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
)

// bisectOptions are the flags of `primus ops bisect`.
type bisectOptions struct {
	experiments.TrainingOptions
	good, bad, metric, file string
	steps                   uint
	tolerance               float64
	nan, byLoss             bool
	output                  cli.OutputFormat
}

// rounding is the share of a loss below which a difference is that of sums in another order.
const rounding = 1e-6

// metricLoss is the only value of --metric.
const metricLoss = "loss"

func newOpsBisectCommand(prog cli.Program) *cobra.Command {
	var opts bisectOptions
	opts.Program = prog
	cmd := &cobra.Command{
		Use:   "bisect --config FILE --bad POLICY|--by-loss [key=value…]",
		Short: "Find the op, the layer and the call that make two policies train differently",
		Long: `Train some steps of an experiment under two policies, on a batch of random tokens, and
find out why their losses differ: which op, by training with some ops under one policy
and the others under the other, then in which layer, and last which call is the first
whose result differs between the two implementations. That call is kept in a file for
primus ops replay.

A policy is an order of tokens as in --per-op, such as reference or
vendor:onednn|flagos, which holds for all ops, or the name of a policy file. An op that
has no implementation for any of the tokens keeps its usual ones. No data is read.

With --by-loss it answers another question: which implementations in use move the loss,
and how far? Each is swapped for that of --good, in groups that are halved and then
alone, with the same weights and tokens; in use are those of --bad, or of the experiment.
They are ranked by their effect on the loss, the validation loss and the gradient norm
after the last step, as multiples of what rounding alone does, which is known from runs
in which each result of these ops is off by a rounding. The search stops after the first
swap when rounding explains the effect of all of them together.

The exit code is 1 when the policies train differently, and with --by-loss when rounding
does not explain the effect of an implementation.`,
		Example: `  primus ops bisect --config exp.yaml --bad vendor:onednn
  primus ops bisect --config exp.yaml --good reference --bad flagos --tolerance 1e-6 train_iters=10
  primus ops bisect --config exp.yaml --good reference --bad impl:vendor.acme --nan --steps 20 -o json
  primus ops bisect --config exp.yaml --by-loss
  primus ops bisect --config exp.yaml --by-loss --good flagos --bad vendor --steps 10 -o json`,
	}
	flags := cmd.Flags()
	opts.TrainingOptions.AddFlags(flags)
	flags.StringVar(&opts.good, "good", "reference", "the `POLICY` that is trusted: tokens or a file")
	flags.StringVar(&opts.bad, "bad", "", "the `POLICY` that is suspected: tokens or a file")
	flags.StringVar(&opts.metric, "metric", metricLoss, "what is compared: `loss`")
	flags.Float64Var(&opts.tolerance, "tolerance", 1e-4, "losses differ when they are farther apart than this `SHARE` of the good one")
	flags.BoolVar(&opts.nan, "nan", false, "look for losses that are not finite, whatever the others are")
	flags.UintVar(&opts.steps, "steps", 3, "train `N` steps")
	flags.BoolVar(&opts.byLoss, "by-loss", false, "rank the impls in use by their effect on loss, validation loss and gradient norm")
	flags.StringVar(&opts.file, "replay-file", "bisect.safetensors", "keep the first call at fault in `FILE`; an empty name keeps none")
	opts.output.AddFlag(cmd)
	for _, name := range []string{"good", "bad", "metric", "tolerance", "nan", "steps", "by-loss", "replay-file", "output"} {
		cli.WithoutVariable(flags, name)
	}
	experiments.TakeOverrides(prog, cmd, experiments.Pretrain.Module, func(cmd *cobra.Command, overrides []string) error {
		if err := opts.check(cmd, overrides); err != nil {
			return err
		}
		if opts.byLoss {
			return opts.rank(cmd, prog, overrides)
		}
		if err := writable("replay-file", opts.file); err != nil {
			return err
		}
		var report *divergence.Report
		err := opts.WithSteps(cmd.Context(), prog, "ops bisect", overrides, func(p experiments.StepParams) (err error) {
			report, err = opts.search(cmd, prog, p)
			return err
		})
		if report == nil {
			return err
		}
		err = errors.Join(err, opts.output.Print(prog.Out, report, func() error {
			_, err := prog.Out.Write([]byte(describeDivergence(report, &opts)))
			return err
		}))
		if err == nil && report.Diverges > 0 {
			return cli.ErrReported
		}
		return err
	})
	return cmd
}

func (o *bisectOptions) check(cmd *cobra.Command, overrides []string) error {
	if err := o.Check(cmd, overrides); err != nil {
		return err
	}
	switch {
	case o.bad == "" && !o.byLoss:
		return cli.Usagef(cmd, "want --bad POLICY, such as --bad vendor:onednn, or --by-loss")
	case o.metric != metricLoss:
		return cli.Usagef(cmd, "--metric: given %q, want %s", o.metric, metricLoss)
	case o.steps == 0:
		return cli.Usagef(cmd, "--steps: given 0, want at least one step")
	case !(o.tolerance >= 0):
		return cli.Usagef(cmd, "--tolerance: given %v, want a number >= 0", o.tolerance)
	}
	for _, name := range []string{"metric", "tolerance", "nan", "replay-file"} {
		if o.byLoss && cmd.Flags().Changed(name) {
			return cli.Usagef(cmd, "--%s is not for --by-loss, which measures all metrics against rounding and keeps no call", name)
		}
	}
	return nil
}

// search runs the search and shows where it is.
func (o *bisectOptions) search(cmd *cobra.Command, prog cli.Program, p experiments.StepParams) (*divergence.Report, error) {
	set, end, err := o.settings(cmd.Context(), prog, p)
	if err != nil {
		return nil, err
	}
	defer end()
	return divergence.Find(cmd.Context(), set)
}

// settings returns those of the search. end removes the line that shows where it is.
func (o *bisectOptions) settings(ctx context.Context, prog cli.Program, p experiments.StepParams) (set divergence.Settings, end func(), err error) {
	good, err := sideOf(ctx, p.Policy, "good", o.good, p.Registry.Snapshot())
	if err != nil {
		return set, nil, err
	}
	bad := p.Policy
	if o.bad != "" {
		if bad, err = sideOf(ctx, p.Policy, "bad", o.bad, p.Registry.Snapshot()); err != nil {
			return set, nil, err
		}
	}
	screen := &plaintext.Console{Out: prog.Err, Width: prog.Width}
	return divergence.Settings{
		Module: p.Module, Manager: p.Manager, Ops: p.Registry.Snapshot(), Device: p.Device, Log: p.Log, Good: good, Bad: bad,
		Steps: int(o.steps), Tolerance: o.tolerance, NaN: o.nan, File: o.file,
		Progress: func(run int, what string) { screen.SetStatus(fmt.Sprintf("run %d: %s", run, what)) },
	}, func() { screen.SetStatus("") }, nil
}

// sideOf returns one of the two policies: base with an order of tokens for all ops, or that of a
// file. The order of base follows the tokens.
func sideOf(ctx context.Context, base oppolicy.Policy, side, text string, snap *opregistry.Snapshot) (oppolicy.Policy, error) {
	info, err := os.Stat(text)
	if errors.Is(err, fs.ErrNotExist) && (filepath.Ext(text) == ".yaml" || strings.ContainsRune(text, filepath.Separator)) {
		return base, cli.UsageError{Err: fmt.Errorf("--%s: there is no file %s; want a policy file, or tokens such as vendor:onednn|flagos", side, text)}
	}
	if err == nil && info.Mode().IsRegular() {
		file, err := policyfile.Read(ctx, text)
		if err != nil {
			return base, cli.UsageError{Err: fmt.Errorf("--%s: %w", side, err)}
		}
		return file.Policy, nil
	}
	var order []oppolicy.Token
	var faults []error
	for word := range strings.SplitSeq(text, "|") {
		token, err := oppolicy.ParseToken(word)
		if err == nil && !fitsAny(token, snap) {
			err = fmt.Errorf("token %q matches no impl of any op; primus ops list shows all", token)
		}
		order, faults = append(order, token), append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return base, cli.UsageError{Err: fmt.Errorf("--%s: %w; or give the name of a policy file", side, err)}
	}
	own := make([]oppolicy.OpRule, 0, len(snap.Ops()))
	for _, op := range snap.Ops() {
		usual, _ := base.Order(op.Name())
		own = append(own, oppolicy.OpRule{Pattern: op.Name(), Order: append(append([]oppolicy.Token{}, order...), usual...), Source: "flag --" + side})
	}
	base.PerOp, base.Rules = own, nil
	return base, nil
}

// fitsAny reports whether a token stands for an impl of any op.
func fitsAny(token oppolicy.Token, snap *opregistry.Snapshot) bool {
	for i := range snap.Ops() {
		for _, e := range snap.Impls(i) {
			if token.Matches(oppolicy.Candidate{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor}, snap.Vendor) {
				return true
			}
		}
	}
	return false
}

// describeDivergence writes a report as text.
func describeDivergence(r *divergence.Report, o *bisectOptions) string {
	var b strings.Builder
	line := func(head, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", head, fmt.Sprintf(format, args...))
	}
	line("good", "%s: losses %s", o.good, lossList(r.Good))
	bad := lossList(r.Bad)
	if len(r.Bad) < len(r.Good) {
		bad = strings.TrimPrefix(bad+" then not finite", " ")
	}
	line("bad", "%s: losses %s", o.bad, bad)
	if r.Diverges == 0 {
		line("result", "no difference in %s beyond %g, although %s", plaintext.Quantity(r.Steps, "step", "steps"), o.tolerance, plaintext.Quantity(len(r.Differ), "op has another impl", "ops have another impl"))
		if most := mostApart(r); most > 0 && !o.nan {
			advice := "; a smaller --tolerance finds the reason"
			if most < rounding {
				advice = ", which is rounding"
			}
			line("", "the losses differ by at most %.2g of the good one%s", most, advice)
		}
		return b.String()
	}
	line("diverges", "at step %d", r.Diverges)
	line("at fault", "%s of %s whose impls differ, after %d runs", strings.Join(r.Ops, ", "), plaintext.Quantity(len(r.Differ), "op", "ops"), r.Runs)
	line("in", "%s", layerList(r.Layers))
	if r.Call == nil {
		line("call", "no single call has a different result: the difference comes from how results are combined")
		return b.String()
	}
	c := r.Call
	line("first call", "%s, %v, on %s instead of %s", c.Op, c.Site, c.Bad, c.Good)
	line("differs by", "%d ulp, %.3g relative; %d of %d elements beyond the tolerance of the op", c.Match.MaxULP, c.Match.MaxRel, c.Match.Beyond, c.Match.Elements)
	if c.Match.Beyond == 0 {
		line("", "all are within the tolerance of the op: the impls round differently, and training amplifies that")
	}
	if c.Match.Worst != "" {
		line("worst", "%s, where want is the result of %s", c.Match.Worst, c.Good)
	}
	if c.File != "" {
		line("replay", "primus ops replay %s", c.File)
	}
	return b.String()
}

// mostApart returns how far losses are apart at most, as a share of the good one.
func mostApart(r *divergence.Report) (most float64) {
	for i, good := range r.Good {
		if i < len(r.Bad) && good != 0 {
			most = max(most, math.Abs(r.Bad[i]-good)/math.Abs(good))
		}
	}
	return most
}

func lossList(losses []float64) string {
	words := make([]string, len(losses))
	for i, l := range losses {
		words[i] = strconv.FormatFloat(l, 'f', 6, 64)
	}
	return strings.Join(words, " ")
}

// layerList describes layers, of which -1 is outside of all.
func layerList(layers []int) string {
	var words []string
	for _, l := range layers {
		if l < 0 {
			words = append(words, "calls outside of layers")
			continue
		}
		words = append(words, fmt.Sprintf("layer %d", l))
	}
	return strings.Join(words, ", ")
}
