package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
)

// common are the parameters that both kinds of requests have.
type common struct {
	Model         string          `json:"model"`
	MaxTokens     *int            `json:"max_tokens"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	TopK          *int            `json:"top_k"` // not of OpenAI, but of other services in this form
	N             *int            `json:"n"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	Stop          json.RawMessage `json:"stop"` // a string or a list of strings
	Seed          *int64          `json:"seed"`

	User     json.RawMessage `json:"user"` // has no effect, like the two below
	Metadata json.RawMessage `json:"metadata"`
	Store    json.RawMessage `json:"store"`

	// What follows is refused unless it has the value that changes nothing.
	FrequencyPenalty json.RawMessage `json:"frequency_penalty"`
	PresencePenalty  json.RawMessage `json:"presence_penalty"`
	LogitBias        json.RawMessage `json:"logit_bias"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// completionRequest is the body of a request for a completion.
type completionRequest struct {
	common
	Prompt   json.RawMessage `json:"prompt"` // a text, a list of texts, or tokens in the same way
	Logprobs *int            `json:"logprobs"`
	BestOf   *int            `json:"best_of"`

	Echo   json.RawMessage `json:"echo"`
	Suffix json.RawMessage `json:"suffix"`
}

// chatRequest is the body of a request for the next message of a conversation.
type chatRequest struct {
	common
	Messages            []message `json:"messages"`
	MaxCompletionTokens *int      `json:"max_completion_tokens"`
	Logprobs            bool      `json:"logprobs"`
	TopLogprobs         int       `json:"top_logprobs"`

	Tools             json.RawMessage `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls json.RawMessage `json:"parallel_tool_calls"`
	Functions         json.RawMessage `json:"functions"`
	FunctionCall      json.RawMessage `json:"function_call"`
	ResponseFormat    json.RawMessage `json:"response_format"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text, or a list of parts with texts
	Name    string          `json:"name"`
}

// The bounds of a request.
const (
	maxChoices = 32 // of all prompts
	maxTop     = 20 // log probabilities for each token
	maxStops   = 16
	maxStop    = 4 << 10 // bytes of one

	defaultTokens = 16 // of a completion, as OpenAI has it
)

// decode reads the body of a request.
func decode(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("there is more after the JSON object")
	}
	if name, unknown := strings.CutPrefix(fmt.Sprint(err), "json: unknown field "); err != nil && unknown {
		return invalid(strings.Trim(name, `"`), "there is no such parameter")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid(strings.TrimPrefix(wrong.Field, "common."), fmt.Sprintf("given a %s, want %v", wrong.Value, wrong.Type))
	}
	if err != nil {
		return invalid("", "the body is no JSON object of this request: "+err.Error())
	}
	return nil
}

// neutral are the values of parameters that change nothing.
var neutral = []string{"", "null", "false", "0", "0.0", "{}", "[]", `""`, `"none"`, `"auto"`, `{"type":"text"}`}

// refuse returns an error for the first parameter that would change something.
func refuse(names []string, values ...json.RawMessage) error {
	for i, v := range values {
		var text bytes.Buffer
		if err := json.Compact(&text, v); len(v) > 0 && err != nil || !slices.Contains(neutral, text.String()) {
			return invalid(names[i], "this model does not support it; leave it out")
		}
	}
	return nil
}

// request returns what all choices of a request share.
func (c *common) request() (inference.Request, error) {
	r := inference.Request{Sampling: inference.Sampling{Temperature: 1, TopP: 1}}
	if err := refuse([]string{"frequency_penalty", "presence_penalty", "logit_bias"}, c.FrequencyPenalty, c.PresencePenalty, c.LogitBias); err != nil {
		return r, err
	}
	set(&r.Temperature, c.Temperature)
	set(&r.TopP, c.TopP)
	if r.TopP <= 0 || r.TopP > 1 {
		return r, invalid("top_p", fmt.Sprintf("given %v, want a number above 0, at most 1", r.TopP))
	}
	set(&r.TopK, c.TopK)
	r.Seed = rand.Uint64()
	if c.Seed != nil {
		r.Seed = uint64(*c.Seed)
	}
	if c.MaxTokens != nil && *c.MaxTokens < 1 {
		return r, invalid("max_tokens", fmt.Sprintf("given %d, want a number >= 1", *c.MaxTokens))
	}
	set(&r.MaxTokens, c.MaxTokens)
	if n := c.choices(); n < 1 || n > maxChoices {
		return r, invalid("n", fmt.Sprintf("given %d, want from 1 to %d", n, maxChoices))
	}
	var err error
	if r.Stop, err = texts("stop", c.Stop); err != nil {
		return r, err
	}
	if len(r.Stop) > maxStops {
		return r, invalid("stop", fmt.Sprintf("given %d strings, want at most %d", len(r.Stop), maxStops))
	}
	if i := slices.IndexFunc(r.Stop, func(s string) bool { return len(s) > maxStop }); i >= 0 {
		return r, invalid("stop", fmt.Sprintf("given a string of %d bytes, want at most %d", len(r.Stop[i]), maxStop))
	}
	if c.StreamOptions != nil && !c.Stream {
		return r, invalid("stream_options", "only allowed with stream")
	}
	return r, nil
}

func (c *common) choices() int {
	n := 1
	set(&n, c.N)
	return n
}

func (c *common) usage() bool { return c.StreamOptions != nil && c.StreamOptions.IncludeUsage }

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// texts reads a string or a list of strings.
func texts(param string, v json.RawMessage) ([]string, error) {
	if len(v) == 0 || string(v) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(v, &one) == nil {
		return []string{one}, nil
	}
	var all []string
	if json.Unmarshal(v, &all) != nil {
		return nil, invalid(param, "want a string or a list of strings")
	}
	return all, nil
}

// prompts returns the tokens of the prompts.
func (c *completionRequest) prompts(tok tokenizer.Tokenizer, capacity int) ([][]int32, error) {
	var ids []int32
	if json.Unmarshal(c.Prompt, &ids) == nil && len(ids) > 0 {
		return [][]int32{ids}, nil
	}
	var lists [][]int32
	if json.Unmarshal(c.Prompt, &lists) == nil && len(lists) > 0 {
		return lists, nil
	}
	all, err := texts("prompt", c.Prompt)
	if err != nil {
		return nil, invalid("prompt", "want a string, a list of strings, a list of tokens or a list of such lists")
	}
	lists = nil // decoding may have left some
	if len(all) > maxChoices {
		return nil, invalid("prompt", fmt.Sprintf("given %d prompts, want at most %d", len(all), maxChoices))
	}
	for _, text := range all {
		if err := plausible("prompt", tok, capacity, text); err != nil {
			return nil, err
		}
		lists = append(lists, inference.Prompt(tok, text))
	}
	if lists == nil {
		return nil, invalid("prompt", "want a prompt")
	}
	return lists, nil
}

// longToken is a number of bytes that texts have fewer of for each token.
const longToken = 16

// plausible returns an error for texts that are far too long together, of which it encodes only the
// beginning.
func plausible(param string, tok tokenizer.Tokenizer, capacity int, texts ...string) error {
	bytes, tokens, left := 0, 0, longToken*capacity
	for _, text := range texts {
		bytes += len(text)
	}
	if bytes <= left {
		return nil
	}
	for _, text := range texts {
		text = text[:min(left, len(text))]
		left -= len(text)
		tokens += len(inference.Prompt(tok, text))
	}
	if tokens > 2*capacity {
		return invalid(param, fmt.Sprintf("given %d bytes, of which the first %d are %d tokens, want fewer than the %d that a text may have", bytes, longToken*capacity, tokens, capacity))
	}
	return nil
}

// conversation returns the tokens of the messages.
func (c *chatRequest) conversation(ctx context.Context, form *inference.Chat, tok tokenizer.Tokenizer, capacity int) ([]int32, error) {
	if len(c.Messages) == 0 {
		return nil, invalid("messages", "want one or more")
	}
	var all []chat.Message
	var contents []string
	for i, m := range c.Messages {
		param := fmt.Sprintf("messages[%d]", i)
		if m.Role == "" {
			return nil, invalid(param+".role", "want a role, such as user")
		}
		text, err := m.text()
		if err != nil {
			return nil, invalid(param+".content", err.Error())
		}
		all, contents = append(all, chat.Message{Role: m.Role, Content: text}), append(contents, m.Role, text)
	}
	if err := plausible("messages", tok, capacity, contents...); err != nil {
		return nil, err
	}
	if form == nil {
		return nil, invalid("messages", inference.ErrNoChat.Error())
	}
	ids, err := form.Prompt(ctx, all...)
	if err != nil {
		return nil, invalid("messages", err.Error())
	}
	return ids, nil
}

// text returns the content of a message.
func (m *message) text() (string, error) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", errors.New("want a string or a list of parts")
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", fmt.Errorf("a part of type %q; this model takes texts", p.Type)
		}
		text += p.Text
	}
	return text, nil
}
