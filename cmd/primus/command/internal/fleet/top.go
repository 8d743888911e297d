package fleet

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

func newFleetTopCommand(prog cli.Program) *cobra.Command {
	var opts service.FleetFlags
	var every time.Duration
	var count int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Follow how the runs of a fleet get on, until interrupted",
		Long: `Follow how the runs of a fleet get on, until interrupted: state, step, loss, how long a
step takes (the median of the last steps), tokens per second, and the share of the calls
of ops that fell back. On a terminal the table is drawn again every two seconds;
elsewhere each table follows the one before.`,
		Example: `  primus fleet top --fleet 10.0.0.1:2379
  primus fleet top --interval 10s --count 6`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return cli.Usagef(cmd, "--interval: given %v, want 100ms or more", every)
			}
			if count < 0 {
				return cli.Usagef(cmd, "--count: given %d, want 0 or more", count)
			}
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				return top(ctx, prog, c, every, count)
			})
		},
	}
	opts.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "draw the table every `TIME`, such as 10s")
	cmd.Flags().IntVar(&count, "count", 0, "end after `N` tables; 0 goes on until interrupted")
	for _, name := range []string{"interval", "count"} {
		cli.WithoutVariable(cmd.Flags(), name)
	}
	return cmd
}

// Sequences of a terminal: to the first line and column, and erase all lines below.
const (
	home      = "\x1b[H"
	eraseDown = "\x1b[J"
)

// top prints a table now and after each interval.
func top(ctx context.Context, prog cli.Program, c *fleet.Client, every time.Duration, count int) error {
	next := time.NewTicker(every)
	defer next.Stop()
	for i := 1; ; i++ {
		text := ""
		s, err := c.List(ctx, min(every, listPatience))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && i == 1:
			return err
		case err != nil:
			text = err.Error() + "\n" // an outage may pass
		default:
			text = topText(prog.Out, s)
		}
		if err := draw(prog, time.Now().Format(cli.TimeOfDay)+"  "+text); err != nil || i == count {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}

// draw prints a text in place of the one before on a terminal, else below it. Rows that are wider
// than the terminal are cut, and so are those for which it is not high enough.
func draw(prog cli.Program, text string) error {
	if prog.Width == nil {
		_, err := fmt.Fprintln(prog.Out, text)
		return err
	}
	var screen strings.Builder
	screen.WriteString(home)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if prog.Height != nil {
		if most := max(prog.Height()-1, 1); len(lines) > most {
			more := len(lines) - most + 1
			lines = append(lines[:most-1:most-1], fmt.Sprintf("and %d more", more))
		}
	}
	for _, line := range lines {
		if runes, width := []rune(line), max(prog.Width()-1, 0); len(runes) > width {
			line = string(runes[:width])
		}
		screen.WriteString(line + plaintext.EraseRest + "\r\n")
	}
	screen.WriteString(eraseDown)
	_, err := fmt.Fprint(prog.Out, screen.String())
	return err
}

// topText returns the number of runs in each state and the table.
func topText(out io.Writer, s fleet.Snapshot) string {
	jobs := chosen{}.of(s)
	slices.SortStableFunc(jobs, func(a, b fleet.Job) int { return urgency(a) - urgency(b) })
	states, order := map[string]int{}, []string{}
	t := plaintext.NewTable(table.Row{"run", "rank", "state", "step", "loss", "step time", "tokens/s", "fallbacks", "seen"}, 4, 5, 6, 7, 8).
		Optional("tokens/s", "fallbacks", "rank")
	for _, j := range jobs {
		state := j.Common(func(m fleet.Member) string { return m.Status.String() })
		if states[state]++; states[state] == 1 {
			order = append(order, state)
		}
		t.AppendRow(table.Row{j.Name(), j.Ranks(), state, stepOf(j), lossOf(j), stepTime(j), tokensOf(j), fallbacksOf(j), seenOf(j, time.Now())})
	}
	if len(jobs) == 0 {
		return "no runs; " + verdict(s) + "\n"
	}
	counts := make([]string, len(order))
	for i, state := range order {
		counts[i] = fmt.Sprintf("%d %s", states[state], state)
	}
	return strings.Join(counts, ", ") + "; " + verdict(s) + "\n" + plaintext.Render(out, t) + "\n"
}

// urgency orders runs: those that need somebody come first.
func urgency(j fleet.Job) int {
	order := []fleet.RunState{fleet.StateLost, fleet.StateStalled, fleet.StateDiverged, fleet.StateStarting, fleet.StateTraining}
	first := len(order)
	for _, m := range j {
		if i := slices.Index(order, m.Status.State); i >= 0 {
			first = min(first, i)
		}
	}
	return first
}

// stepTime returns how long a step of the slowest rank takes.
func stepTime(j fleet.Job) string {
	longest := 0.0
	for _, m := range j {
		longest = max(longest, m.Status.Pace.Median())
	}
	if longest == 0 {
		return "-"
	}
	return time.Duration(longest * float64(time.Second)).Round(10 * time.Microsecond).String()
}

// tokensOf returns the tokens per second of the run, which its first rank counts.
func tokensOf(j fleet.Job) string {
	if rate := j[0].Status.TokensPerSecond; rate != nil {
		return plaintext.Count(uint64(max(0, *rate)))
	}
	return "-"
}

// fallbacksOf returns the share of calls that fell back, of the rank where it is largest.
func fallbacksOf(j fleet.Job) string {
	largest, calls := 0.0, uint64(0)
	for _, m := range j {
		largest, calls = max(largest, m.Status.Pace.FallbackRate()), calls+m.Status.Pace.Calls
	}
	if calls == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*largest)
}
