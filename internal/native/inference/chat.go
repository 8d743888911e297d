package inference

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
)

// Chat turns conversations into tokens.
type Chat struct {
	tok      tokenizer.Tokenizer
	source   string
	template *chat.Template
	bos, eos string
	guard    guard
	stop     []string
}

// ErrNoChat says that a model has no chat template.
var ErrNoChat = errors.New("the tokenizer of the model has no chat template: give one with --chat-template, such as chatml")

// NewChat returns the form of conversations with a model: by the template of its tokenizer, by one
// that comes with package chat, or by one in a file. name is "" for that of the tokenizer, which
// may have none: that is ErrNoChat.
func NewChat(ctx context.Context, tok tokenizer.Tokenizer, name string) (*Chat, error) {
	c := &Chat{tok: tok}
	file, isFile := tok.(*tokenizer.File)
	source := ""
	if isFile {
		c.guard = newGuard(file)
		source, c.bos, c.eos = file.ChatTemplate(), tokenName(file, file.BOS()), tokenName(file, file.EOS())
	}
	if name != "" {
		text, err := chat.Source(name)
		if err != nil {
			return nil, err
		}
		source = text
	}
	if source == "" {
		return nil, ErrNoChat
	}
	var err error
	c.source = source
	if c.template, err = chat.Parse(source); err != nil {
		return nil, err
	}
	c.stop = c.findStop(ctx)
	return c, nil
}

func tokenName(f *tokenizer.File, id int32) string {
	if id < 0 {
		return ""
	}
	text, _ := f.Token(id)
	return text
}

func (c *Chat) text(ctx context.Context, prompt bool, messages []chat.Message) (string, error) {
	return c.template.Text(ctx, chat.Conversation{Messages: chat.Messages(messages...), BOS: c.bos, EOS: c.eos, Prompt: prompt, Now: time.Now()})
}

// Prompt returns the tokens of a conversation, with those that an answer begins with. Special
// tokens are those that the template writes: the name of one in a message is text.
func (c *Chat) Prompt(ctx context.Context, messages ...chat.Message) ([]int32, error) {
	mark, err := mark(messages)
	if err != nil {
		return nil, err
	}
	messages = slices.Clone(messages)
	for i, m := range messages {
		messages[i] = chat.Message{Role: c.guard.protect(m.Role, mark), Content: c.guard.protect(m.Content, mark)}
	}
	text, err := c.text(ctx, true, messages)
	if err != nil {
		return nil, err
	}
	return encodeMarked(c.tok, text, mark), nil
}

// Template returns the source of the template.
func (c *Chat) Template() string { return c.source }

// Stop returns what ends an answer: the text that the template writes after one.
func (c *Chat) Stop() []string { return c.stop }

func (c *Chat) findStop(ctx context.Context) []string {
	const answer = "an answer that no template has"
	text, err := c.text(ctx, false, []chat.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: answer}})
	if err != nil {
		return nil // Prompt says what is wrong
	}
	if _, after, found := strings.Cut(text, answer); found {
		if after = strings.TrimSpace(after); after != "" {
			return []string{after}
		}
	}
	return nil
}
