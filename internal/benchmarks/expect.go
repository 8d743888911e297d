package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
)

// expectation is the time that a dry run expects beside the real one.
type expectation struct {
	Model    string  `json:"model"`
	Expected float64 `json:"expected_seconds"`
	Took     float64 `json:"took_seconds"`
	Ratio    float64 `json:"ratio"` // expected / took
}

// expectRuns are the lengths at which models train for about a minute on two processors.
func expectRuns() [][]string {
	return [][]string{
		{"llama_2M-pretrain", "train_iters=300"}, {"llama_6M-pretrain", "train_iters=60"}, {"gpt2_10M-pretrain", "train_iters=40"}, {"llama_30M-pretrain", "train_iters=3"},
	}
}

// expect trains models after a dry run of each.
func expect(ctx context.Context, args []string, out, progress io.Writer) error {
	var all []expectation
	format, err := eachRun("expect", args, progress, expectRuns(), func(primus, dir string, r []string) error {
		line := append([]string{"train", "--config", r[0], "final_eval_windows=16", "save_interval=1000000"}, r[1:]...)
		e := expectation{Model: strings.TrimSuffix(r[0], "-pretrain")}
		text, _, err := primusSays(ctx, primus, dir, append(line, "--dry-run")...)
		if err == nil {
			e.Expected, err = secondsIn(text, `(?m)^  time +about (\S+) at `)
		}
		if err == nil {
			text, _, err = primusSays(ctx, primus, dir, line...)
		}
		if err == nil {
			e.Took, err = secondsIn(text, `(?m)^steps .* in (\S+)$`)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r[0], err)
		}
		e.Ratio = e.Expected / e.Took
		all = append(all, e)
		return nil
	})
	if err != nil {
		return err
	}
	return write(out, format, all, func(w io.Writer) error {
		t := plaintext.NewTable(table.Row{"model", "expected", "took", "ratio"})
		for _, e := range all {
			t.AppendRow(table.Row{e.Model, figure("%.1f s", e.Expected), figure("%.1f s", e.Took), figure("%.2f", e.Ratio)})
		}
		_, err := fmt.Fprintln(w, plaintext.Render(w, t))
		return err
	})
}

// eachRun reads the flags of a command, and calls f for each run whose model is asked for, with the
// program and a folder that is removed afterwards. It returns the format of the result.
func eachRun(name string, args []string, progress io.Writer, runs [][]string, f func(primus, dir string, run []string) error) (format string, err error) {
	var primus, only string
	flags := newFlags(name, progress)
	primusFlag(flags, &primus)
	formatFlag(flags, &format)
	flags.StringVar(&only, "only", "", "only models whose names begin so")
	if err := parse(flags, args); err != nil {
		return "", err
	}
	if primus, err = filepath.Abs(primus); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "primus-"+name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for _, r := range runs {
		if !strings.HasPrefix(r[0], only) {
			continue
		}
		fmt.Fprintf(progress, "%s: %s\n", name, r[0])
		if err := f(primus, dir, r); err != nil {
			return "", err
		}
	}
	return format, nil
}

// primusSays runs primus in a folder and returns what it writes to standard output and to standard
// error.
func primusSays(ctx context.Context, primus, dir string, args ...string) (out, log string, err error) {
	cmd := exec.CommandContext(ctx, primus, args...)
	cmd.Dir = dir
	var logged strings.Builder
	cmd.Stderr = &logged
	text, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("primus %s: %w\n%s", strings.Join(args, " "), err, logged.String())
	}
	return string(text), logged.String(), nil
}

// secondsIn returns the duration that a pattern finds.
func secondsIn(text, pattern string) (float64, error) {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("want %s in\n%s", pattern, text)
	}
	d, err := time.ParseDuration(found[1])
	return d.Seconds(), err
}
