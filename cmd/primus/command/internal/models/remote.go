package models

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
)

// remote is a model that a service offers by the API of OpenAI.
type remote struct {
	*chatOptions
	base, token, model string
	plain              bool // it has no chat template, and goes on with the text
	client             *http.Client
}

const (
	connectTimeout = 30 * time.Second // of the first request, and until an answer begins
	maxReply       = 1 << 20          // of a reply that is not streamed, and of a line of one that is
)

// newRemote asks a service for its model.
func newRemote(ctx context.Context, o *chatOptions) (*remote, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(o.Dir, "/"), "/v1")
	r := &remote{chatOptions: o, base: base, client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: connectTimeout}}}
	if o.tokenFile != "" {
		text, err := secret.Read(o.tokenFile)
		if err != nil {
			return nil, cli.UsageError{Err: fmt.Errorf("--token-file: %w", err)}
		}
		r.token = strings.TrimSpace(string(text))
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	body, err := r.send(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var models struct {
		Data []struct {
			ID           string  `json:"id"`
			ChatTemplate *string `json:"chat_template"` // nil where services do not tell
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(body, maxReply)).Decode(&models); err != nil {
		return nil, fmt.Errorf("%s/v1/models: want a list of models in JSON: %w", base, err)
	}
	if len(models.Data) == 0 {
		return nil, fmt.Errorf("%s offers no model: primus serve --model DIR does", base)
	}
	r.model = models.Data[0].ID
	template := models.Data[0].ChatTemplate
	r.plain = template != nil && *template == ""
	return r, nil
}

// send makes a request and returns the body of a reply that is no error.
func (r *remote) send(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, cli.UsageError{Err: fmt.Errorf("given %q, want the address of a service: %w", r.Dir, err)}
	}
	request.Header.Set("Content-Type", "application/json")
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	reply, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode == http.StatusOK {
		return reply.Body, nil
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	var fault struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err == nil && json.Unmarshal(text, &fault) == nil && fault.Error.Message != "" {
		text = []byte(fault.Error.Message)
	}
	return nil, fmt.Errorf("%s%s: %s: %s", r.base, path, reply.Status, plaintext.Text(strings.TrimSpace(string(text))))
}

func (r *remote) answer(ctx context.Context, messages []chat.Message, emit func(text string) error) error {
	request := map[string]any{"model": r.model, "stream": true, "temperature": r.Temperature, "top_p": r.TopP, "seed": r.Seed}
	if r.maxTokens > 0 {
		request["max_tokens"] = r.maxTokens
	}
	if r.TopK > 0 {
		request["top_k"] = r.TopK
	}
	path := "/v1/chat/completions"
	if r.plain {
		path, request["prompt"] = "/v1/completions", plainText(messages)
	} else {
		var said []savedMessage
		for _, m := range messages {
			said = append(said, savedMessage{m.Role, m.Content})
		}
		request["messages"] = said
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	body, err := r.send(ctx, http.MethodPost, path, text)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxReply)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return nil
		}
		var event struct {
			Choices []struct {
				Text  string `json:"text"`
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return fmt.Errorf("%s: want an event in JSON: %w", r.base, err)
		}
		if event.Error.Message != "" {
			return fmt.Errorf("%s: %s", r.base, plaintext.Text(event.Error.Message))
		}
		for _, choice := range event.Choices {
			if err := emit(choice.Text + choice.Delta.Content); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", r.base, err)
	}
	return errors.New("the answer broke off: the service has ended")
}
