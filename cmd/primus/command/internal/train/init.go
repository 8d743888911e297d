package train

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/train/firstrun"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/spf13/cobra"
)

// NewInit returns the command `primus init`.
func NewInit(prog cli.Program) *cobra.Command {
	var s firstrun.Settings
	s.Training.Program = prog
	cmd := &cobra.Command{
		Use:   "init TEXT…",
		Short: "Write an experiment that trains a model on a text",
		Long: `Write an experiment that trains a model on texts: files or folders of text, JSON lines or
Parquet, compressed or not, or - for standard input, which is kept in stdin.txt. It trains a
tokenizer, measures for seconds how fast this machine trains, and takes the largest model
that sees two tokens for each of its parameters in --time; no text is seen more than six
times. NAME.yaml and NAME-tokenizer.json are written to the working directory, and nothing
is trained yet.
primus train TEXT does both.

Without TEXT it asks, if standard input is a terminal.`,
		Example: `  primus init book.txt
  primus init notes/ --time 1h --name notes
  primus init corpus.jsonl.zst --model llama_30M --time 8h`,
		RunE: func(cmd *cobra.Command, texts []string) error {
			s.Texts = texts
			if len(texts) == 0 {
				if err := ask(cmd, prog, &s); err != nil {
					return err
				}
			}
			var err error
			if s.Texts, err = firstrun.SaveInput(prog, cmd.InOrStdin(), s.Texts, "", s.Name); err != nil {
				return err
			}
			file, made, err := firstrun.Experiment(cmd.Context(), prog, s)
			if err != nil {
				return err
			}
			if made == nil {
				_, err = fmt.Fprintf(prog.Out, "%s is there already: train it with\n\n  primus train --config %[1]s\n", file)
				return err
			}
			_, err = fmt.Fprintf(prog.Out, "%s\nwritten to %s; train it with\n\n  primus train --config %[2]s\n", made.Summary(), file)
			return err
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&s.Time, "time", firstrun.DefaultTime, "`TIME` that training is to take, about")
	flags.StringVar(&s.Name, "name", "", "`NAME` of the run and the files; the default is that of the text")
	flags.StringVar(&s.Model, "model", "", "take this model `PRESET`: "+strings.Join(firstrun.Models(), ", "))
	flags.StringVar(&s.Corpus.TextKey, "text-key", "", "`KEY` of JSON objects, or column of Parquet, that holds the text; the default is "+corpus.DefaultTextKey)
	flags.UintVar(&s.Training.Threads, "threads", 0, "measure with `N` CPU threads for ops; 0 is one per CPU")
	cli.WithoutVariable(flags, "time", "name", "model", "text-key")
	if err := cmd.RegisterFlagCompletionFunc("model", cobra.FixedCompletions(firstrun.Models(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

// ask asks for what was not given, in a terminal only.
func ask(cmd *cobra.Command, prog cli.Program, s *firstrun.Settings) error {
	in := cmd.InOrStdin()
	if !cli.IsTerminal(in) {
		return cli.Usagef(cmd, "no text given, want files or folders of text")
	}
	answers := bufio.NewReader(in)
	question := func(text string) (string, error) {
		fmt.Fprint(prog.Err, text)
		line, err := answers.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return strings.TrimSpace(line), nil
	}
	text, err := question("Text to train on, a file or a folder: ")
	if err != nil {
		return err
	}
	if text == "" {
		return cli.Usagef(cmd, "no text given, want a file or a folder of text")
	}
	s.Texts = []string{text}
	if cmd.Flags().Changed("time") {
		return nil
	}
	limit, err := question(fmt.Sprintf("Time for training [%v]: ", s.Time))
	if err != nil || limit == "" {
		return err
	}
	if s.Time, err = time.ParseDuration(limit); err != nil {
		return cli.Usagef(cmd, "given the time %q, want one such as 10m or 8h", limit)
	}
	return nil
}

// trainTexts makes the experiment for texts, unless it is there, and trains it.
func trainTexts(cmd *cobra.Command, prog cli.Program, s experiments.Stage, opts Options, overrides []string) (err error) {
	if opts.output == cli.OutputJSON {
		return cli.Usagef(cmd, "-o json is for a dry run of an experiment; primus init %s writes one", strings.Join(experiments.Texts(cmd), " "))
	}
	name := ""
	var how corpus.Settings
	for _, token := range overrides {
		switch key, value, _ := strings.Cut(strings.TrimLeft(token, "-"), "="); key {
		case "exp_name":
			name = value
		case "train_data_format":
			how.Format = corpus.Format(value)
		case "text_key":
			how.TextKey = value
		case "on_bad_record":
			how.OnBad = corpus.OnBad(value)
		}
	}
	texts, remove, err := savedTexts(cmd, prog, name, opts.run.DryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	file, made, err := firstrun.Experiment(cmd.Context(), prog, firstrun.Settings{Texts: texts, Time: opts.time, Name: name, DryRun: opts.run.DryRun, Corpus: how, Training: opts.TrainingOptions})
	if err != nil {
		return err
	}
	opts.note = "going on with " + file + ", which was made for this text"
	if cmd.Flags().Changed("time") {
		opts.note += "; for another --time delete it, or give exp_name=NAME"
	}
	if made != nil && opts.run.DryRun {
		_, err := fmt.Fprintf(prog.Out, "dry run: %s is not written, and nothing is trained\n\n%s", file, made.Summary())
		return err
	}
	if made != nil {
		opts.note = "experiment written to " + file + ": primus train --config " + file + " trains it again"
		fmt.Fprint(prog.Err, made.Summary())
	}
	opts.Config = file
	if err := cmd.Flags().Set("config", file); err != nil { // for other processes of the run
		return err
	}
	opts.line = lineOfRank(cmd, overrides)
	if err := runStage(cmd, prog, s, opts, overrides); err != nil || opts.run.DryRun || opts.run.Launch.Launcher != "" {
		return err
	}
	experiment, err := opts.Load(cmd.Context(), s.Module, overrides)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(prog.Err, "\ntalk to it: primus chat %s\n", experiment.RootPath())
	return err
}

// savedTexts returns the texts of a command, with standard input in a file, which a dry run removes
// at its end.
func savedTexts(cmd *cobra.Command, prog cli.Program, name string, dry bool) (texts []string, remove func() error, err error) {
	if dry {
		return firstrun.TempInput(prog, cmd.InOrStdin(), experiments.Texts(cmd), name)
	}
	texts, err = firstrun.SaveInput(prog, cmd.InOrStdin(), experiments.Texts(cmd), "", name)
	return texts, func() error { return nil }, err
}
