package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// Summary writes which impls a run called, how it ended, and the text that the model generated.
func Summary(out io.Writer, r backend.Result) error {
	var b strings.Builder
	if used := dispatchTable(out, r.Impls, r.Device); used != "" {
		fmt.Fprintf(&b, "\n%s\n", used)
	}
	if used := ranksTable(out, r.Ranks); used != "" {
		fmt.Fprintf(&b, "\n%s\n", used)
	}
	fmt.Fprintf(&b, "\nrun         %s %s\n", r.Name, ending(r.Err))
	fmt.Fprintf(&b, "steps       %s\n", steps(r))
	if j := r.Job; j != nil {
		fmt.Fprintf(&b, "ranks       %d: %.0f %% of the time of steps went to waiting for others; %.0f %% of the exchange of gradients was hidden; rank %d computed longest, %.1f %% above the mean\n",
			j.Ranks, 100*j.Waiting, 100*j.Hidden, j.Slowest, 100*j.Behind)
		for _, c := range j.Traffic {
			if c.Calls > 0 {
				fmt.Fprintf(&b, "            %s: %s of %s in %s\n", c.Op, plaintext.Quantity(int(c.Calls), "call", "calls"), sysmem.Text(float64(c.Bytes)), c.Time.Round(time.Millisecond))
			}
		}
	}
	if r.Device != nil {
		b.WriteString(deviceLines(r.Device))
	}
	if r.Restarts.Count > 0 {
		fmt.Fprintf(&b, "restarts    %s\n", r.Restarts)
	}
	if r.LastStep > 0 {
		fmt.Fprintf(&b, "loss        %.4f at step 1, %.4f at step %d (%s)\n", r.FirstLoss, r.Loss, r.LastStep, r.LossIn())
	}
	if r.CrossEntropy != nil {
		fmt.Fprintf(&b, "            %.4f at step %d without what patches add: the cross entropy alone\n", *r.CrossEntropy, r.LastStep)
	}
	if text := r.Health.String(); text != "" {
		fmt.Fprintf(&b, "health      %s\n", text)
	}
	if r.ValidLoss != nil {
		fmt.Fprintf(&b, "validation  %.4f%s%s\n", *r.ValidLoss, evaluated(r.ValidTokens), bitsPerByte(*r.ValidLoss, r.ValidTokens, r.ValidBytes))
	}
	if r.TestLoss != nil {
		fmt.Fprintf(&b, "test        %.4f%s\n", *r.TestLoss, evaluated(r.TestTokens))
	}
	if r.BadRecords > 0 {
		fmt.Fprintf(&b, "data        %s left out (on_bad_record=skip)\n", plaintext.Quantity(r.BadRecords, "bad record", "bad records"))
	}
	if len(r.Ignored) > 0 {
		fmt.Fprintf(&b, "no effect   %s (no parameters of this backend)\n", strings.Join(r.Ignored, ", "))
	}
	for _, v := range r.Versions {
		fmt.Fprintf(&b, "version     %s %s\n", v.Name, v.Version)
	}
	for _, s := range r.Impls {
		if v := s.Verify; v.Violations > 0 {
			fmt.Fprintf(&b, "wrong       %s on %s in %s%s\n", s.Op, s.ID, plaintext.Quantity(int(v.Violations), "call", "calls"), replayOf(v.File))
		}
	}
	b.WriteString(patchSummary(r.Patches))
	for _, cost := range r.Reference {
		fmt.Fprintf(&b, "slow        %s (%s)\n", cost, plaintext.Quantity(cost.Steps, "step", "steps"))
	}
	for _, u := range r.Unusable {
		fmt.Fprintf(&b, "not used    %s\n", u)
	}
	for _, c := range r.Canaries {
		fmt.Fprintf(&b, "canary      %s: %s\n", c.Op, c)
	}
	for _, p := range r.PutBack {
		fmt.Fprintf(&b, "policy      %s\n", p)
	}
	for _, line := range r.Tracking {
		fmt.Fprintf(&b, "tracking    %s\n", line)
	}
	fmt.Fprintf(&b, "directory   %s\n", r.Dir)
	if r.Sample != "" {
		fmt.Fprintf(&b, "\ngenerated text after %q\n%s\n", r.Prompt, plaintext.Indent(plaintext.Printable(r.Sample)))
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

// replayOf says how to run the wrong call in a file again, "" for none.
func replayOf(file string) string {
	if file == "" {
		return ""
	}
	return "; primus ops replay " + file + " runs the last one again"
}

// bitsPerByte says how many bits a byte of the text takes, if tokens are not bytes: it can be
// compared between tokenizers.
func bitsPerByte(loss float64, tokens, bytes int) string {
	if tokens == bytes || bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %.4f bits per byte", loss*float64(tokens)/float64(bytes)/math.Ln2)
}

// evaluated says how many tokens a validation loss is the mean of.
func evaluated(tokens int) string {
	if tokens == 0 {
		return ""
	}
	return fmt.Sprintf(" over %d tokens", tokens)
}

// steps says how far a run came and how long that took.
func steps(r backend.Result) string {
	took := r.Duration.Round(time.Second / 10)
	switch done := r.LastStep - r.FirstStep + 1; {
	case done <= 0:
		return fmt.Sprintf("%d, none in this run", r.LastStep)
	case done < r.LastStep:
		return fmt.Sprintf("%d of %d, the last %d of them in this run in %s", r.LastStep, r.Steps, done, took)
	case r.Steps == 0:
		return fmt.Sprintf("%d in %s", r.LastStep, took)
	default:
		return fmt.Sprintf("%d of %d in %s", r.LastStep, r.Steps, took)
	}
}

// ending says in a word how a run ended. The error itself is printed once, after everything else.
func ending(err error) string {
	switch {
	case err == nil:
		return "finished"
	case errors.Is(err, backend.ErrInterrupted):
		return "interrupted"
	case errors.Is(err, backend.ErrDiverged):
		return "diverged"
	}
	return "failed"
}

// deviceLines says what a device is, how much of its memory a run used, and how busy it was.
func deviceLines(u *backend.DeviceUse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "device      %s", u.Device)
	if u.Description.Name != "" {
		fmt.Fprintf(&b, ": %s, %s", u.Description.Name, u.Description.Driver)
	}
	b.WriteByte('\n')
	if u.Memory.Peak > 0 {
		fmt.Fprintf(&b, "            memory: at most %s in use, %s with what is kept for reuse", sysmem.Text(float64(u.Memory.Peak)), sysmem.Text(float64(u.Memory.Reserved)))
		if u.Memory.Total > 0 {
			fmt.Fprintf(&b, ", of %s", sysmem.Text(float64(u.Memory.Total)))
		}
		b.WriteByte('\n')
	}
	if n := u.Steps.Commands; n > 0 {
		fmt.Fprintf(&b, "            busy for %s of the %s of the steps after the first: %.1f %% are outside of its commands; %d commands, which waited %s each in the queue\n",
			u.Steps.Busy.Round(time.Millisecond), u.StepTime.Round(time.Millisecond), 100*u.Outside(), n, (u.Steps.Queued / time.Duration(n)).Round(time.Microsecond))
	}
	return b.String()
}

// dispatchTable shows the impls that were called, those that took most of the time first. Declined,
// failed, copied and verified calls have columns when there are any. When a device was measured,
// the time on it decides, and what it did outside of calls has a row.
func dispatchTable(out io.Writer, stats []opmanager.ImplStats, dev *backend.DeviceUse) string {
	var total time.Duration
	var rows []opmanager.ImplStats
	trouble, copied, verified := false, false, false
	for _, s := range stats {
		if s.Calls+s.Errors+s.Declines == 0 {
			continue
		}
		rows = append(rows, s)
		total += s.Duration
		trouble = trouble || s.Errors+s.Declines > 0
		copied = copied || s.CrossDevice > 0
		verified = verified || s.Verify.Calls+s.Verify.Skipped > 0
	}
	if len(rows) == 0 {
		return ""
	}
	measured := dev != nil && dev.Measured
	var worked map[[2]string]time.Duration
	var busy time.Duration
	if measured {
		worked = make(map[[2]string]time.Duration, len(dev.Ops))
		for _, o := range dev.Ops {
			worked[[2]string{o.Op, o.Impl}] = o.Work.Busy
			busy += o.Work.Busy
		}
	}
	on := func(s opmanager.ImplStats) time.Duration { return worked[[2]string{s.Op, s.ID}] }
	slices.SortStableFunc(rows, func(a, b opmanager.ImplStats) int {
		return cmp.Or(cmp.Compare(on(b), on(a)), cmp.Compare(b.Duration, a.Duration))
	})
	header := table.Row{"op", "impl", "kind", "calls", "total time", "share", "fallbacks"}
	if measured {
		rows = append(rows, opmanager.ImplStats{}) // outside of calls
		header[4] = "host time"
		header = append(header, "device time", "of device")
	}
	if trouble {
		header = append(header, "declines", "errors")
	}
	if copied {
		header = append(header, "across devices", "copied")
	}
	if verified {
		header = append(header, "verified", "violations", "largest difference")
	}
	t := plaintext.NewTable(header, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16).Optional("kind", "share")
	for _, s := range rows {
		row := table.Row{s.Op, s.ID, s.Kind, s.Calls, serving(s), shareOf(s.Duration, total), plaintext.Count(s.Fallbacks)}
		if s.Op == "" {
			row = table.Row{"outside of calls", "-", "-", "-", "-", "-", "-"}
		}
		if measured {
			row = append(row, seconds(on(s)), shareOf(on(s), busy))
		}
		if trouble {
			row = append(row, plaintext.Count(s.Declines), plaintext.Count(s.Errors))
		}
		if copied {
			row = append(row, plaintext.Count(s.CrossDevice), sysmem.Text(float64(s.CrossDeviceBytes)))
		}
		if verified {
			row = append(row, verifiedCells(s.Verify)...)
		}
		t.AppendRow(row)
	}
	return plaintext.Render(out, t)
}

// serving writes the time of the calls that an impl served, with ~ before an estimate.
func serving(s opmanager.ImplStats) string {
	if s.Estimated {
		return "~" + seconds(s.Duration)
	}
	return seconds(s.Duration)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// shareOf writes a part of a time in percent.
func shareOf(part, all time.Duration) string {
	if all <= 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*part.Seconds()/all.Seconds())
}

// ranksTable shows the impls that the processes of a framework use, and how often and how long
// where they count that.
func ranksTable(out io.Writer, uses []backend.RankUse) string {
	if len(uses) == 0 {
		return ""
	}
	var total time.Duration
	counted := false
	for _, u := range uses {
		total += time.Duration(u.Nanos)
		counted = counted || u.Calls > 0
	}
	header := table.Row{"op", "impl", "kind", "ranks", "fallbacks", "errors"}
	if counted {
		header = table.Row{"op", "impl", "kind", "ranks", "calls", "total time", "share", "fallbacks", "declines", "errors"}
		uses = slices.Clone(uses)
		slices.SortStableFunc(uses, func(a, b backend.RankUse) int { return cmp.Compare(b.Nanos, a.Nanos) })
	}
	t := plaintext.NewTable(header, 4, 5, 6, 7, 8, 9, 10).Optional("kind")
	for _, u := range uses {
		row := table.Row{u.Op, u.Impl, plaintext.Dash(u.Kind), u.Ranks}
		if counted {
			took := time.Duration(u.Nanos)
			row = append(row, u.Calls, seconds(took), shareOf(took, total), plaintext.Count(u.Fallbacks), plaintext.Count(u.Declines))
		} else {
			row = append(row, plaintext.Count(u.Fallbacks))
		}
		t.AppendRow(append(row, plaintext.Count(u.Errors)))
	}
	return plaintext.Render(out, t)
}

// patchSummary counts the patches of a run and names those that failed.
func patchSummary(patches []backend.PatchResult) string {
	counts := map[string]int{}
	var failed strings.Builder
	for _, p := range patches {
		counts[p.Result]++
		if p.Result == backend.PatchFailed {
			fmt.Fprintf(&failed, "            %s failed in phase %s: %s\n", p.ID, p.Phase, p.Reason)
		}
	}
	if counts[backend.PatchApplied]+counts[backend.PatchFailed] == 0 {
		return ""
	}
	return fmt.Sprintf("patches     %d applied, %d failed, %d skipped (primus patches plan --run lists them)\n%s",
		counts[backend.PatchApplied], counts[backend.PatchFailed], counts[backend.PatchSkipped], failed.String())
}

// verifiedCells says how many calls were compared with the reference, how many could not be or were
// not for want of time, and how far they were off at most.
func verifiedCells(v opmanager.VerifyStats) table.Row {
	var words []string
	for _, n := range []struct {
		calls uint64
		why   string
	}{{v.Calls, ""}, {v.Skipped, " skipped"}, {v.Deferred, " deferred"}} {
		if n.calls > 0 {
			words = append(words, plaintext.Count(n.calls)+n.why)
		}
	}
	if v.Calls == 0 {
		return table.Row{plaintext.Dash(strings.Join(words, ", ")), "-", "-"}
	}
	return table.Row{strings.Join(words, ", "), plaintext.Count(v.Violations), fmt.Sprintf("%.1e", v.MaxAbs)}
}
