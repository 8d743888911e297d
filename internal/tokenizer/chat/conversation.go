package chat

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/suggest"
)

//go:embed templates/*.jinja
var templates embed.FS

// Names returns the names of the templates that come with this package.
func Names() []string {
	entries, err := templates.ReadDir("templates")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var all []string
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	return all
}

// Named returns the source of a template that comes with this package, for tokenizers without one
// of their own.
func Named(name string) (source string, err error) {
	text, err := templates.ReadFile(path.Join("templates", name+".jinja"))
	if err != nil {
		return "", fmt.Errorf("chat: there is no template %q%s; want one of %s", name, suggest.Hint(name, Names()), strings.Join(Names(), ", "))
	}
	return string(text), nil
}

// Source returns the source of a template by the name of one that comes with this package, else
// from a file.
func Source(name string) (string, error) {
	if slices.Contains(Names(), name) {
		return Named(name)
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		_, err := Named(name)
		return "", fmt.Errorf("%w, or a file", err)
	}
	text, err := durable.ReadRegular(name, maxSource)
	if err != nil {
		return "", fmt.Errorf("chat: %w", durable.Explain(err))
	}
	return string(text), nil
}

// Message is a message with a text and nothing else.
type Message struct{ Role, Content string }

// Messages returns messages as templates see them.
func Messages(all ...Message) any {
	l := &list{}
	for _, m := range all {
		l.items = append(l.items, NewMap().Set("role", m.Role).Set("content", m.Content))
	}
	return l
}

// Conversation is what a template is applied to.
type Conversation struct {
	Messages any    // of Messages or ParseJSON: a list of mappings with role and content
	Tools    any    // of ParseJSON; nil for none
	BOS, EOS string // the texts of the tokenizer's special tokens
	Prompt   bool   // end with what an answer begins with: add_generation_prompt
	More     Vars   // further variables, such as enable_thinking
	Now      time.Time
}

// Text returns the text of a conversation.
func (t *Template) Text(ctx context.Context, c Conversation) (string, error) {
	text, _, err := t.apply(ctx, c)
	return text, err
}

func (t *Template) apply(ctx context.Context, c Conversation) (text string, spans []Span, err error) {
	if _, err := c.list(); err != nil {
		return "", nil, err
	}
	vars := Vars{"messages": c.Messages, "tools": c.Tools, "bos_token": c.BOS, "eos_token": c.EOS, "add_generation_prompt": c.Prompt}
	maps.Copy(vars, c.More)
	return t.Render(ctx, vars, c.Now)
}

// list returns the messages.
func (c Conversation) list() ([]any, error) {
	l, ok := c.Messages.(*list)
	if !ok || len(l.items) == 0 {
		return nil, errors.New("chat: messages: want a list of one message or more")
	}
	for i, item := range l.items {
		m, ok := item.(*Map)
		if !ok {
			return nil, fmt.Errorf("chat: message %d: given %s, want an object with role and content", i+1, typeName(item))
		}
		role, _ := m.Get("role")
		if _, ok := role.(string); !ok {
			return nil, fmt.Errorf("chat: message %d: role: given %s, want a string such as user", i+1, typeName(role))
		}
	}
	return l.items, nil
}

// Sample is the text of a conversation with the parts that a model is to learn to write: what comes
// after the beginning of each answer, with the token that ends it.
type Sample struct {
	Text    string
	Answers []Span // in their order; at least one
}

// Samples returns what a conversation teaches: one sample with all messages of the role assistant,
// as the generation blocks of the template mark them or, without such blocks, as the texts of the
// conversation up to each answer tell. A template that shows earlier answers otherwise than the
// last one, as some drop what a model thought, gives one sample per answer, which ends with it.
func (t *Template) Samples(ctx context.Context, c Conversation) ([]Sample, error) {
	items, err := c.list()
	if err != nil {
		return nil, err
	}
	c.Prompt = false
	whole, marked, err := t.apply(ctx, c)
	if err != nil {
		return nil, err
	}
	if t.marks {
		if len(marked) == 0 {
			return nil, errors.New("chat: given no answer, want a message of the role assistant")
		}
		return []Sample{{whole, marked}}, nil
	}
	one, each := Sample{Text: whole}, []Sample(nil)
	together := true
	for i, item := range items {
		if role, _ := item.(*Map).Get("role"); role != "assistant" {
			continue
		}
		if i == 0 {
			return nil, errors.New("chat: the first message is of the role assistant, want a message before it")
		}
		c.Messages, c.Prompt = &list{items: items[:i]}, true
		before, _, err := t.apply(ctx, c)
		if err != nil {
			return nil, err
		}
		c.Messages, c.Prompt = &list{items: items[:i+1]}, false
		with, _, err := t.apply(ctx, c)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(with, before) || len(with) == len(before) {
			return nil, fmt.Errorf("chat: message %d: the text of the template with the answer does not begin with the text before it, so that its parts are not known", i+1)
		}
		span := Span{len(before), len(with)}
		together = together && strings.HasPrefix(whole, with)
		one.Answers, each = append(one.Answers, span), append(each, Sample{with, []Span{span}})
	}
	switch {
	case len(each) == 0:
		return nil, errors.New("chat: given no answer, want a message of the role assistant")
	case together:
		return []Sample{one}, nil
	}
	return each, nil
}
