package modes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/launch/placement"
	"github.com/primus-fl/primus/internal/report"
	"github.com/spf13/cobra"
)

// run does what a line says.
func (l *line) run(cmd *cobra.Command, prog cli.Program, newRoot NewRoot) (err error) {
	defer func() { err = errors.Join(err, l.vars.Rewind(0)) }()
	train := l.command[0] == "train"
	if train && len(l.chain) > 0 && len(l.patches) > 0 {
		return cli.Usagef(cmd, "--patch: given together with train in mode %s, want direct: call the script in the image, or before primus", l.chain[0])
	}
	if err := check(newRoot(prog), l.command); err != nil {
		return err
	}
	if !train && len(l.chain) > 0 {
		l.log = l.outer
	}
	if !train && len(l.chain) == 0 {
		if l.file != "" {
			l.notes = append(l.notes, fmt.Sprintf("--config %s has no effect: %s has no launcher", l.file, l.command[0]))
		}
		if l.single {
			l.notes = append(l.notes, fmt.Sprintf("--single has no effect: %s starts no Python framework", l.command[0]))
		}
	}
	close, err := l.output(&prog)
	if err != nil {
		return err
	}
	if err := l.environment(cmd.Context()); err != nil {
		return errors.Join(err, close())
	}
	for _, note := range l.notes {
		fmt.Fprintln(prog.Err, "primus: warning:", note)
	}
	switch {
	case train:
		err = l.here(cmd.Context(), prog, newRoot, l.trainFlags())
	case len(l.chain) > 0:
		err = l.elsewhere(cmd, prog)
	default:
		err = l.here(cmd.Context(), prog, newRoot, nil)
	}
	return errors.Join(err, close())
}

// check returns the first mistake in the words of a command that parses its flags in the usual way.
func check(root *cobra.Command, words []string) error {
	if words[0] == "--help" || words[0] == "-h" {
		return nil
	}
	cmd, args, err := root.Find(words)
	if err != nil || cmd == root {
		return cli.UnknownCommand(root, words[0])
	}
	if slices.Contains(append(modes, deps), cmd.Name()) && cmd.Parent() == root {
		return cli.Usagef(cmd, "given mode %s after --, want a command", cmd.Name())
	}
	if cmd.DisableFlagParsing {
		return nil
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(args); err != nil {
		return cmd.FlagErrorFunc()(cmd, err)
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// output sends what is printed where the line says. The function that it returns closes the file.
func (l *line) output(prog *cli.Program) (func() error, error) {
	if l.silent {
		prog.Out, prog.Err, prog.Width = io.Discard, io.Discard, nil
	}
	if l.log == "" || l.dryRun {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(l.log), 0o755); err != nil {
		return nil, fmt.Errorf("--log_file: %w", err)
	}
	f, err := os.Create(l.log)
	if err != nil {
		return nil, fmt.Errorf("--log_file: %w", err)
	}
	prog.Out, prog.Err, prog.Width, prog.Color = io.MultiWriter(prog.Out, f), io.MultiWriter(prog.Err, f), nil, false
	return f.Close, nil
}

// variableName is a name of a variable alone, which files of assignments do not have.
var variableName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// environment sets the variables of the line, and leaves in l.env the names of those that are set.
func (l *line) environment(ctx context.Context) error {
	if l.debug {
		if err := l.vars.Set("PRIMUS_LOG_LEVEL", "DEBUG", "--debug"); err != nil {
			return err
		}
	}
	var files, pairs []string
	for _, given := range l.env {
		switch _, set := os.LookupEnv(given); {
		case strings.Contains(given, "="):
			pairs = append(pairs, given)
		case variableName.MatchString(given):
			if !set {
				l.notes = append(l.notes, fmt.Sprintf("--env %s has no effect: the variable is not set here", given))
			}
		default:
			files = append(files, given)
		}
	}
	for _, file := range files {
		assigned, err := source(ctx, file)
		if err != nil {
			return fmt.Errorf("--env %s: %w; want NAME=VALUE, or a file of shell assignments", file, err)
		}
		pairs = append(assigned, pairs...)
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if err := l.vars.Set(name, value, "--env"); err != nil {
			return fmt.Errorf("--env %s=…: %w; want NAME=VALUE", name, err)
		}
		l.env = append(l.env, name)
	}
	l.env = slices.DeleteFunc(l.env, func(s string) bool { return strings.Contains(s, "=") || slices.Contains(files, s) })
	return nil
}

// source returns the variables that a file of shell assignments changes, as NAME=VALUE.
func source(ctx context.Context, file string) ([]string, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "bash", "-c", `set -a; source "$1" >&2 && env -0`, "bash", file).Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("bash: %w: %s", err, bytes.TrimSpace(failed.Stderr))
		}
		return nil, err
	}
	var changed []string
	for pair := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		if old, set := os.LookupEnv(name); name != "_" && name != "SHLVL" && (!set || old != value) {
			changed = append(changed, pair)
		}
	}
	return changed, nil
}

// trainFlags returns the flags of train that stand for the modes.
func (l *line) trainFlags() []string {
	var flags []string
	if len(l.chain) > 0 {
		flags = append(flags, "--launcher="+strings.Join(l.chain, ","))
	}
	if l.file != "" {
		flags = append(flags, "--launcher-file="+l.file)
	}
	for _, o := range l.launcherOptions() {
		flags = append(flags, "--launcher-option="+o)
	}
	if l.single {
		flags = append(flags, "--nproc-per-node=1")
	}
	if l.dryRun {
		flags = append(flags, "--dry-run")
	}
	return flags
}

// launcherOptions returns the launcher settings of the line. Values of variables are in none of
// them.
func (l *line) launcherOptions() []string {
	all := slices.Clone(l.options)
	if slices.Contains(l.chain, container) {
		for _, name := range l.env {
			all = append(all, "container.env="+name)
		}
	}
	return all
}

// here runs the command in this process, with more flags, after the patch scripts.
func (l *line) here(ctx context.Context, prog cli.Program, newRoot NewRoot, flags []string) error {
	words := slices.Concat(l.command, flags)
	if l.dryRun && l.command[0] != "train" {
		for _, script := range l.patches {
			fmt.Fprintf(prog.Out, "would run: bash %s\n", launch.Quote(script))
		}
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = launch.Quote(word)
		}
		_, err := fmt.Fprintln(prog.Out, "would run: primus", strings.Join(quoted, " "))
		return err
	}
	for _, script := range l.patches {
		if l.dryRun {
			fmt.Fprintln(prog.Err, "primus: not run, and so its arguments are unknown: bash", script)
			continue
		}
		more, err := l.patch(ctx, prog.Err, script)
		if err != nil {
			return err
		}
		words = append(words, more...)
	}
	root := newRoot(prog)
	root.SetArgs(words)
	return root.ExecuteContext(ctx)
}

// Lines of a patch script that mean something.
var (
	patchVariable = regexp.MustCompile(`^env\.([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
	patchArgument = regexp.MustCompile(`^extra\.([A-Za-z_][A-Za-z0-9_.]*[A-Za-z0-9_])=(.*)$`)
)

// patchSkips is the exit code of a script that is not needed.
const patchSkips = 2

// patch runs a script, sets the variables that it prints, and returns the arguments.
func (l *line) patch(ctx context.Context, out io.Writer, script string) ([]string, error) {
	if _, err := os.Stat(script); err != nil {
		return nil, fmt.Errorf("--patch: %w", err)
	}
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, &printed), out
	err := cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || failed.ExitCode() != patchSkips) {
		return nil, fmt.Errorf("--patch %s: %w; want exit code 0, or %d where it is not needed", script, err, patchSkips)
	}
	var words []string
	for text := range strings.Lines(printed.String()) {
		text = strings.TrimRight(text, "\r\n")
		if m := patchVariable.FindStringSubmatch(text); m != nil {
			if err := l.vars.Set(m[1], m[2], script); err != nil {
				return nil, fmt.Errorf("--patch %s: env.%s: %w", script, m[1], err)
			}
		} else if m := patchArgument.FindStringSubmatch(text); m != nil {
			words = append(words, "--"+m[1]+"="+m[2])
		}
	}
	return words, nil
}

// namesOnly leaves out the values of variables: they are in the environment, and a command line is
// for everybody to read.
func namesOnly(words []string) []string {
	names := slices.Clone(words)
	for i, word := range names {
		if value, joined := strings.CutPrefix(word, "--env="); joined {
			name, _, _ := strings.Cut(value, "=")
			names[i] = "--env=" + name
		} else if i > 0 && names[i-1] == "--env" {
			names[i], _, _ = strings.Cut(word, "=")
		}
	}
	return names
}

// elsewhere starts the command where the first mode says. What follows that mode is read again
// there.
func (l *line) elsewhere(cmd *cobra.Command, prog cli.Program) error {
	o := launch.Options{Launcher: l.chain[0], Grace: cli.DefaultGrace}
	settings, err := experiments.LoadLauncher(cmd.Context(), prog, &o, l.file, l.launcherOptions())
	if err != nil {
		return err
	}
	if o, err = o.Resolve(os.LookupEnv); err != nil {
		return cli.UsageError{Err: err}
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the file of primus: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	o.Launcher = l.chain[0]
	r := placement.Run{
		Options: o, Name: strings.Join(l.command[:1], "-"), Program: program, Command: namesOnly(l.inner), Plain: true, Dir: dir, RunDir: filepath.Join(dir, "output", l.command[0]),
		Workspace: dir, Lookup: os.LookupEnv, Names: experiments.VariableNames(),
	}
	plan, err := placement.New(r, settings)
	if err != nil {
		return err
	}
	if l.dryRun {
		_, err := fmt.Fprintf(prog.Out, "%s  primus %s\n", report.Placement(prog.Out, plan, settings, l.chain[:1]), strings.Join(r.Command, " "))
		return err
	}
	return experiments.CarryOut(cmd.Context(), prog, plan, r)
}
