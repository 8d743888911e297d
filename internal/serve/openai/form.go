package openai

import (
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// form writes results as one of the two kinds of answers.
type form interface {
	whole(j *job, h *Handler) any
	begin(j *job, h *Handler, index int) any // the first event of a choice; nil for none
	part(j *job, h *Handler, index int, e inference.Event) any
	end(j *job, h *Handler, index int, finish string) any
	usage(j *job, h *Handler) any
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// body is an answer or an event.
type body struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices any    `json:"choices"`
	Usage   *usage `json:"usage,omitempty"`
}

func (j *job) body(h *Handler, object string, choices any) body {
	return body{ID: j.id, Object: object, Created: j.created, Model: h.name, Choices: choices}
}

// textForm is the form of completions.
type textForm struct{ tok tokenizer.Tokenizer }

type textChoice struct {
	Text     string        `json:"text"`
	Index    int           `json:"index"`
	Logprobs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type textLogprobs struct {
	Tokens   []string             `json:"tokens"`
	Logprobs []float64            `json:"token_logprobs"`
	Top      []map[string]float64 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"`
}

func (f textForm) logprobs(j *job, events ...inference.Event) *textLogprobs {
	if !j.request.Logprobs {
		return nil
	}
	l := &textLogprobs{Tokens: []string{}, Logprobs: []float64{}, Top: []map[string]float64{}, Offsets: []int{}}
	offset := 0
	for _, e := range events {
		if e.ID >= 0 {
			top := map[string]float64{}
			for _, t := range e.Top {
				top[tokenText(f.tok, t.ID)] = t.Logprob
			}
			l.Tokens, l.Logprobs = append(l.Tokens, tokenText(f.tok, e.ID)), append(l.Logprobs, e.Logprob.Logprob)
			l.Top, l.Offsets = append(l.Top, top), append(l.Offsets, offset)
		}
		offset += len([]rune(e.Text))
	}
	return l
}

func (f textForm) whole(j *job, h *Handler) any {
	choices := []textChoice{}
	for i, c := range j.completed {
		finish := string(c.Finish)
		choices = append(choices, textChoice{c.Text, i, f.logprobs(j, c.events...), &finish})
	}
	b := j.body(h, "text_completion", choices)
	b.Usage = &j.usage
	return b
}

func (textForm) begin(*job, *Handler, int) any { return nil }

func (f textForm) part(j *job, h *Handler, index int, e inference.Event) any {
	return j.body(h, "text_completion", []textChoice{{e.Text, index, f.logprobs(j, e), nil}})
}

func (textForm) end(j *job, h *Handler, index int, finish string) any {
	return j.body(h, "text_completion", []textChoice{{"", index, nil, &finish}})
}

func (textForm) usage(j *job, h *Handler) any {
	b := j.body(h, "text_completion", []textChoice{})
	b.Usage = &j.usage
	return b
}

// chatForm is the form of answers in a conversation.
type chatForm struct{ tok tokenizer.Tokenizer }

type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatText     `json:"message,omitempty"`
	Delta    *chatText     `json:"delta,omitempty"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type chatText struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatLogprobs struct {
	Content []tokenLogprob `json:"content"`
}

type tokenLogprob struct {
	topLogprob
	Top []topLogprob `json:"top_logprobs"`
}

type topLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (f chatForm) logprob(l inference.Logprob) topLogprob {
	top := topLogprob{Token: tokenText(f.tok, l.ID), Logprob: l.Logprob, Bytes: []int{}}
	for _, b := range f.tok.Decode(nil, []int32{l.ID}) {
		top.Bytes = append(top.Bytes, int(b))
	}
	return top
}

func (f chatForm) logprobs(j *job, events ...inference.Event) *chatLogprobs {
	if !j.request.Logprobs {
		return nil
	}
	l := &chatLogprobs{Content: []tokenLogprob{}}
	for _, e := range events {
		if e.ID < 0 {
			continue
		}
		t := tokenLogprob{f.logprob(e.Logprob), []topLogprob{}}
		for _, x := range e.Top {
			t.Top = append(t.Top, f.logprob(x))
		}
		l.Content = append(l.Content, t)
	}
	return l
}

func (f chatForm) whole(j *job, h *Handler) any {
	choices := []chatChoice{}
	for i, c := range j.completed {
		finish := string(c.Finish)
		choices = append(choices, chatChoice{Index: i, Message: &chatText{"assistant", &c.Text}, Logprobs: f.logprobs(j, c.events...), Finish: &finish})
	}
	b := j.body(h, "chat.completion", choices)
	b.Usage = &j.usage
	return b
}

const chunkObject = "chat.completion.chunk"

func (chatForm) begin(j *job, h *Handler, index int) any {
	return j.body(h, chunkObject, []chatChoice{{Index: index, Delta: &chatText{"assistant", new(string)}}})
}

func (f chatForm) part(j *job, h *Handler, index int, e inference.Event) any {
	return j.body(h, chunkObject, []chatChoice{{Index: index, Delta: &chatText{Content: &e.Text}, Logprobs: f.logprobs(j, e)}})
}

func (chatForm) end(j *job, h *Handler, index int, finish string) any {
	return j.body(h, chunkObject, []chatChoice{{Index: index, Delta: &chatText{}, Finish: &finish}})
}

func (chatForm) usage(j *job, h *Handler) any {
	b := j.body(h, chunkObject, []chatChoice{})
	b.Usage = &j.usage
	return b
}

// tokenText returns the text of a token, with U+FFFD for bytes that are no UTF-8.
func tokenText(tok tokenizer.Tokenizer, id int32) string {
	return string([]rune(string(tok.Decode(nil, []int32{id}))))
}
