package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// printSummary tells what ran where, how the run ended, and shows what the model writes.
func printSummary(out io.Writer, r backend.Result, stats []opmanager.ImplStats) {
	fmt.Fprintln(out)
	fmt.Fprintln(out, dispatchTable(stats))
	fmt.Fprintln(out)
	state := "finished"
	if r.Err != nil {
		state = "stopped: " + r.Err.Error()
	}
	fmt.Fprintf(out, "run         %s %s\n", r.Name, state)
	fmt.Fprintf(out, "steps       %d of %d in %s\n", r.LastStep, r.Steps, r.Duration.Round(time.Second/10))
	if r.LastStep >= r.FirstStep {
		fmt.Fprintf(out, "loss        %.4f at step %d, %.4f at step %d (nats a token)\n", r.FirstLoss, r.FirstStep, r.Loss, r.LastStep)
	}
	if r.ValidLoss != nil {
		fmt.Fprintf(out, "validation  %.4f\n", *r.ValidLoss)
	}
	fmt.Fprintf(out, "directory   %s\n", r.Dir)
	if r.Sample != "" {
		fmt.Fprintf(out, "\ngenerated text\n%s\n", indent(printable(r.Sample)))
	}
}

func dispatchTable(stats []opmanager.ImplStats) string {
	var total time.Duration
	for _, s := range stats {
		total += s.Duration
	}
	t := table.NewWriter()
	t.SetStyle(plainStyle)
	t.AppendHeader(table.Row{"op", "impl", "kind", "calls", "total time", "share", "fallbacks", "declines", "errors"})
	t.SetColumnConfigs(alignColumns(3, 9))
	stats = slices.SortedStableFunc(slices.Values(stats), func(a, b opmanager.ImplStats) int { return cmp.Compare(b.Duration, a.Duration) })
	for _, s := range stats {
		if s.Calls+s.Errors+s.Declines == 0 {
			continue
		}
		share := 0.0
		if total > 0 {
			share = 100 * s.Duration.Seconds() / total.Seconds()
		}
		t.AppendRow(table.Row{s.Op, s.ID, s.Kind, s.Calls, s.Duration.Round(time.Millisecond).String(), fmt.Sprintf("%.1f", share) + " %",
			blankZero(s.Fallbacks), blankZero(s.Declines), blankZero(s.Errors)})
	}
	return t.Render()
}

func blankZero(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

// printable replaces what a terminal would not show.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '·'
	}, s)
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }
