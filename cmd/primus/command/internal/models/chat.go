package models

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/primus-fl/primus/opmanager"
	"github.com/spf13/cobra"
)

// chatOptions are the flags of `primus chat`.
type chatOptions struct {
	Options
	inference.Sampling
	system, template, tokenFile string
	maxTokens, topK             uint
}

// NewChat returns the command `primus chat`.
func NewChat(prog cli.Program) *cobra.Command {
	var o chatOptions
	cmd := &cobra.Command{
		Use:   "chat RUN|DIR|URL",
		Short: "Talk to a trained model",
		Long: `Talk to a trained model: that of a run (its folder, or its name in primus runs list), a
checkpoint or a folder of Hugging Face, or one that a service offers (primus serve
--model, or another with the API of OpenAI). Each line of standard input is a message;
answers appear as they are generated. A run that is still training answers with its
newest checkpoint.

  /system TEXT   begin again with a system message
  /reset         begin again
  /save FILE     write the conversation to FILE, one JSON object with messages
  /exit          end; so does the end of the input

A message that gets no answer is not part of the conversation; the exit code is 1 then.
Ctrl-C stops an answer, and ends the command between answers. The model sees the whole
conversation. A model without a chat template, such as one that was trained on plain
text, goes on with the text of the conversation; --chat-template gives it a form.`,
		Example: `  primus chat my_run
  primus chat output/local/local/my_run
  primus chat http://127.0.0.1:8000 --system 'Answer in one sentence.'
  echo 'Once upon a time' | primus chat DIR --temperature 0 --max-tokens 50`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef(cmd, "given %d arguments, want the folder of a model or the address of a service", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir, o.TopK = modelDir(args[0]), int(o.topK)
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), prog, cmd.InOrStdin())
		},
	}
	o.addRunFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.system, "system", "", "begin with this `TEXT` as system message")
	flags.StringVar(&o.template, "chat-template", "", "the `NAME` of a chat template, such as chatml, or a file with one, instead of the tokenizer's")
	flags.StringVar(&o.tokenFile, "token-file", "", "with URL, the `FILE` with the token that the service wants")
	addSamplingFlags(flags, &o.Sampling, &o.topK)
	flags.UintVar(&o.maxTokens, "max-tokens", 200, "end an answer after `N` tokens; 0 is as many as fit")
	cli.WithoutVariable(flags, "system", "chat-template", "token-file", "max-tokens", "context")
	return cmd
}

// modelDir returns the folder of the run of the default workspace that has a name, unless there is
// a file or folder of that name, else what it was given.
func modelDir(name string) string {
	if _, err := os.Lstat(name); err == nil {
		return name
	}
	archive, err := runs.OpenArchive(runs.DefaultWorkspace)
	if err != nil {
		return name
	}
	r, err := archive.Find(name)
	if err != nil {
		return name
	}
	return archive.Dir(r)
}

// isURL reports whether the model is one of a service.
func (o *chatOptions) isURL() bool {
	return strings.HasPrefix(o.Dir, "http://") || strings.HasPrefix(o.Dir, "https://")
}

func (o *chatOptions) check(cmd *cobra.Command) error {
	if err := o.Load.Check(cmd); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return cli.Usagef(cmd, "--%w", err)
	}
	if o.tokenFile != "" && !o.isURL() {
		return cli.Usagef(cmd, "--token-file is for a service: given %q, want a URL such as http://127.0.0.1:8000", o.Dir)
	}
	if o.template != "" && o.isURL() {
		return cli.Usagef(cmd, "--chat-template is for a model that is loaded here: the service chooses its own")
	}
	return nil
}

func (o *chatOptions) run(ctx context.Context, prog cli.Program, stdin io.Reader) error {
	if o.isURL() {
		remote, err := newRemote(ctx, o)
		if err != nil {
			return err
		}
		if remote.plain {
			fmt.Fprintln(prog.Err, "the model has no chat template: it goes on with the text of the conversation (primus serve --chat-template chatml gives it a form)")
		}
		return o.talk(ctx, prog, stdin, remote)
	}
	return o.Run(ctx, prog, func(m *inference.Loaded, mgr *opmanager.Manager) (err error) {
		form, err := inference.NewChat(ctx, m.Tokenizer, cmp.Or(o.template, m.ChatTemplate))
		if errors.Is(err, inference.ErrNoChat) {
			form, err = nil, nil
			fmt.Fprintln(prog.Err, "the model has no chat template: it goes on with the text of the conversation (--chat-template chatml gives it a form)")
		}
		if err != nil {
			return err
		}
		e, err := inference.New(m.Model, m.Tokenizer, mgr, inference.Settings{Slots: 1, Capacity: int(o.Context), EOS: m.EOS})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		return o.talk(ctx, prog, stdin, &local{o, e, m.Tokenizer, form})
	})
}

// A partner answers a conversation. It passes the answer on in pieces.
type partner interface {
	answer(ctx context.Context, messages []chat.Message, emit func(text string) error) error
}

// local is a model in this process. form is nil for one without a chat template.
type local struct {
	*chatOptions
	engine *inference.Engine
	tok    tokenizer.Tokenizer
	form   *inference.Chat
}

func (l *local) answer(ctx context.Context, messages []chat.Message, emit func(text string) error) (err error) {
	r := inference.Request{MaxTokens: int(l.maxTokens), Sampling: l.Sampling}
	if l.form == nil {
		r.Prompt = inference.Prompt(l.tok, plainText(messages))
	} else {
		r.Stop = l.form.Stop()
		if r.Prompt, err = l.form.Prompt(ctx, messages...); err != nil {
			return err
		}
	}
	r.Slide = r.MaxTokens > 0
	_, err = l.engine.Generate(ctx, r, func(e inference.Event) error { return emit(e.Text) })
	return err
}

// plainText is what a model without a chat template goes on with.
func plainText(messages []chat.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Content)
	}
	return strings.Join(texts, "\n")
}

// conversation is what /save writes.
type conversation struct {
	Messages []savedMessage `json:"messages"`
}

type savedMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// talk reads messages and prints answers until the input ends.
func (o *chatOptions) talk(ctx context.Context, prog cli.Program, stdin io.Reader, with partner) error {
	system := func(text string) []chat.Message {
		if text == "" {
			return nil
		}
		return []chat.Message{{Role: "system", Content: text}}
	}
	messages := system(o.system)
	lines := readLines(ctx, stdin)
	var failed error
	for {
		if prog.Width != nil {
			fmt.Fprint(prog.Err, "> ")
		}
		var line string
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-lines:
			if next.err != nil {
				if prog.Width != nil {
					fmt.Fprintln(prog.Err)
				}
				if errors.Is(next.err, io.EOF) {
					return failed
				}
				return fmt.Errorf("read the next message: %w", next.err)
			}
			line = strings.TrimSpace(next.text)
		}
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case word == "/exit":
			return failed
		case word == "/reset":
			messages = system(o.system)
		case word == "/system":
			o.system = strings.TrimSpace(rest)
			messages = system(o.system)
		case word == "/save":
			if err := save(strings.TrimSpace(rest), messages); err != nil {
				fmt.Fprintln(prog.Err, "not saved:", err)
			}
		case strings.HasPrefix(line, "/"):
			fmt.Fprintf(prog.Err, "no command %s: want /system TEXT, /reset, /save FILE or /exit\n", word)
		default:
			answer, err := o.exchange(ctx, prog, with, append(messages, chat.Message{Role: "user", Content: line}))
			if errors.Is(err, errOutput) || ctx.Err() != nil {
				return err
			}
			if err != nil {
				fmt.Fprintln(prog.Err, "no answer:", err)
				failed = cli.ErrReported
				continue
			}
			messages = append(messages, chat.Message{Role: "user", Content: line}, chat.Message{Role: "assistant", Content: answer})
		}
	}
}

// exchange prints an answer, which an interrupt ends, and returns it.
func (o *chatOptions) exchange(ctx context.Context, prog cli.Program, with partner, messages []chat.Message) (string, error) {
	answering, stop := context.WithCancel(ctx)
	defer stop()
	defer prog.Ending.OnInterrupt(stop)()
	var answer strings.Builder
	err := with.answer(answering, messages, func(text string) error {
		answer.WriteString(text)
		if _, err := io.WriteString(prog.Out, text); err != nil {
			return fmt.Errorf("%w: %w", errOutput, err)
		}
		return nil
	})
	if answering.Err() != nil && ctx.Err() == nil {
		err = nil // stopped by the user
	}
	if _, newline := io.WriteString(prog.Out, "\n"); newline != nil && err == nil {
		err = fmt.Errorf("%w: %w", errOutput, newline)
	}
	return answer.String(), err
}

// errOutput marks what ends a conversation because answers cannot be shown.
var errOutput = errors.New("write the answer")

// save writes a conversation to a new file.
func save(file string, messages []chat.Message) error {
	if file == "" {
		return errors.New("/save: no file given, want /save FILE")
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already: give another name", file)
	}
	var c conversation
	for _, m := range messages {
		c.Messages = append(c.Messages, savedMessage{m.Role, m.Content})
	}
	return durable.Create(file, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(c)
	})
}

// inputLine is a line of standard input, or what ended it.
type inputLine struct {
	text string
	err  error
}

// readLines passes on the lines of the input until it or ctx ends. Reading cannot be interrupted,
// so it happens beside the conversation.
func readLines(ctx context.Context, in io.Reader) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		from := bufio.NewReader(in)
		for {
			text, err := readLine(from, maxLine)
			if text != "" {
				err = nil // which comes again
			}
			select {
			case lines <- inputLine{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// readLine returns a line with its end, or what comes before the end of the input. A line beyond
// the limit is an error.
func readLine(from *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return "", fmt.Errorf("standard input has a line of more than %d bytes", limit)
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return string(line), err
		}
	}
}
