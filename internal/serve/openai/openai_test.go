package openai_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/serve/openai"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// service is a model with random weights behind a real HTTP server.
type service struct {
	t      *testing.T
	base   string
	engine *inference.Engine

	handler *openai.Handler
	server  *httptest.Server
}

// chatTokenizer returns a tokenizer with a chat template.
func chatTokenizer(t *testing.T) tokenizer.Tokenizer {
	t.Helper()
	c := trainer.Default()
	c.VocabSize, c.SpecialTokens = 300, []string{"<|im_start|>", "<|im_end|>"}
	tr, err := trainer.New(c)
	require.NoError(t, err)
	tr.AddText([]byte(strings.Repeat("Who are you? I am a model of two layers. ", 20)))
	result, err := tr.Train(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), result.JSON, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(`{"eos_token": "<|im_end|>", "chat_template":
		"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"}`), 0o600))
	f, err := tokenizer.Load(dir)
	require.NoError(t, err)
	return f
}

func start(t *testing.T, tok tokenizer.Tokenizer, set inference.Settings) *service {
	t.Helper()
	return startLimited(t, tok, set, openai.DefaultLimits())
}

func startLimited(t *testing.T, tok tokenizer.Tokenizer, set inference.Settings, limits openai.Limits) *service {
	t.Helper()
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	require.NoError(t, reg.Register(flagos.Source()))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	backend := cpu.New()
	m, err := model.NewFrozen(model.Config{
		NumLayers: 2, HiddenSize: 32, FFNHiddenSize: 48, NumAttentionHeads: 4, NumQueryGroups: 2,
		SeqLength: 128, VocabSize: 300, RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.3, Untie: true,
	}, backend)
	require.NoError(t, err)
	m.Init(2)
	e, err := inference.New(m, tok, mgr, set)
	require.NoError(t, err)
	h := openai.New("tiny", limits)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := r.Header.Get("X-Client"); client != "" {
			r = r.WithContext(openai.WithClient(r.Context(), client))
		}
		h.ServeHTTP(w, r)
	}))
	s := &service{t, server.URL, e, h, server}
	status, body := s.post("/v1/completions", `{"prompt": "a"}`)
	assert.Equal(t, http.StatusServiceUnavailable, status, "the model is not there yet")
	assert.Contains(t, body, "being loaded")
	require.Error(t, h.Ready())
	form, err := inference.NewChat(t.Context(), tok, "")
	if err != nil {
		require.ErrorIs(t, err, inference.ErrNoChat)
	}
	h.Open(e, form)
	require.NoError(t, h.Ready())
	t.Cleanup(func() {
		server.Close()
		assert.NoError(t, e.Close())
		assert.NoError(t, m.Close())
		mgr.Close()
		assert.NoError(t, backend.Close())
	})
	return s
}

func (s *service) post(path, body string) (int, string) {
	s.t.Helper()
	resp, err := http.Post(s.base+path, "application/json", strings.NewReader(body)) //nolint:noctx // a test
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(text)
}

// ask posts a request that succeeds.
func ask[T any](s *service, path, body string) (answer T) {
	s.t.Helper()
	status, text := s.post(path, body)
	require.Equal(s.t, http.StatusOK, status, text)
	require.NoError(s.t, json.Unmarshal([]byte(text), &answer), text)
	return answer
}

type completion struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Text     string
		Index    int
		Finish   *string `json:"finish_reason"`
		Message  struct{ Role, Content string }
		Delta    struct{ Role, Content string }
		Logprobs *struct {
			Tokens   []string
			Logprobs []float64            `json:"token_logprobs"`
			Top      []map[string]float64 `json:"top_logprobs"`
			Offsets  []int                `json:"text_offset"`
			Content  []struct {
				Token   string
				Logprob float64
				Bytes   []int
				Top     []struct{ Token string } `json:"top_logprobs"`
			}
		}
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

// stream posts a request and returns the events of the answer.
func (s *service) stream(path, body string) []completion {
	s.t.Helper()
	resp, err := http.Post(s.base+path, "application/json", strings.NewReader(body)) //nolint:noctx // a test
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	var events []completion
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			require.Empty(s.t, lines.Text())
			continue
		}
		if data == "[DONE]" {
			return events
		}
		var e completion
		require.NoError(s.t, json.Unmarshal([]byte(data), &e), data)
		events = append(events, e)
	}
	s.t.Fatal("no [DONE]")
	return nil
}

func TestCompletions(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{Slots: 3})
	const body = `{"model": "tiny", "prompt": "func", "max_tokens": 9, "temperature": 0, "logprobs": 2`
	got := ask[completion](s, "/v1/completions", body+"}")
	assert.True(t, strings.HasPrefix(got.ID, "cmpl-"))
	assert.Equal(t, "text_completion", got.Object)
	assert.Equal(t, "tiny", got.Model)
	assert.InDelta(t, time.Now().Unix(), got.Created, 60)
	require.Len(t, got.Choices, 1)
	c := got.Choices[0]
	assert.Equal(t, "length", *c.Finish)
	assert.NotEmpty(t, c.Text)
	assert.Len(t, c.Logprobs.Tokens, 9)
	assert.Len(t, c.Logprobs.Logprobs, 9)
	assert.Len(t, c.Logprobs.Offsets, 9)
	assert.NotEmpty(t, c.Logprobs.Top[0])
	assert.Equal(t, 4, got.Usage.Prompt)
	assert.Equal(t, 9, got.Usage.Completion)
	assert.Equal(t, 13, got.Usage.Total)

	events := s.stream("/v1/completions", body+`, "stream": true, "stream_options": {"include_usage": true}}`)
	var text strings.Builder
	for _, e := range events[:len(events)-1] {
		require.Len(t, e.Choices, 1)
		text.WriteString(e.Choices[0].Text)
		assert.Nil(t, e.Usage)
	}
	assert.Equal(t, c.Text, text.String())
	assert.Equal(t, "length", *events[len(events)-2].Choices[0].Finish)
	assert.Empty(t, events[len(events)-1].Choices)
	assert.Equal(t, got.Usage, events[len(events)-1].Usage)
}

func TestPromptsAndChoices(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{Slots: 3})
	const rest = `, "temperature": 1, "seed": 7, "max_tokens": 12}`
	many := ask[completion](s, "/v1/completions", `{"prompt": ["func", "package"], "n": 2`+rest)
	require.Len(t, many.Choices, 4)
	one := ask[completion](s, "/v1/completions", `{"prompt": [102, 117, 110, 99]`+rest)
	assert.Equal(t, one.Choices[0].Text, many.Choices[0].Text, "the seed of a choice does not depend on the others")
	assert.NotEqual(t, many.Choices[0].Text, many.Choices[1].Text)
	lists := ask[completion](s, "/v1/completions", `{"prompt": [[102, 117, 110, 99], [1]]`+rest)
	assert.Equal(t, one.Choices[0].Text, lists.Choices[0].Text)
	assert.Len(t, lists.Choices, 2)

	text := one.Choices[0].Text
	require.Greater(t, len(text), 4)
	stop, err := json.Marshal([]string{"never", string([]rune(text)[2:4])})
	require.NoError(t, err)
	stopped := ask[completion](s, "/v1/completions", `{"prompt": "func", "stop": `+string(stop)+rest)
	assert.Equal(t, string([]rune(text)[:2]), stopped.Choices[0].Text)
	assert.Equal(t, "stop", *stopped.Choices[0].Finish)
	assert.Equal(t, 16, ask[completion](s, "/v1/completions", `{"prompt": "func", "max_tokens": null}`).Usage.Completion)
}

func TestChat(t *testing.T) {
	s := start(t, chatTokenizer(t), inference.Settings{Slots: 2})
	const body = `{"model": "tiny", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Who are "}, {"type": "text", "text": "you?"}]}],
		"max_completion_tokens": 10, "temperature": 0, "logprobs": true, "top_logprobs": 2`
	got := ask[completion](s, "/v1/chat/completions", body+"}")
	assert.Equal(t, "chat.completion", got.Object)
	assert.Equal(t, "assistant", got.Choices[0].Message.Role)
	assert.NotEmpty(t, got.Choices[0].Message.Content)
	content := got.Choices[0].Logprobs.Content
	require.Len(t, content, 10)
	assert.Len(t, content[0].Top, 2)
	assert.NotEmpty(t, content[0].Bytes)
	tokens := s.engine.Tokenizer().Encode(nil, []byte("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWho are you?<|im_end|>\n<|im_start|>assistant\n"))
	assert.Equal(t, len(tokens), got.Usage.Prompt)

	events := s.stream("/v1/chat/completions", body+`, "stream": true}`)
	var text strings.Builder
	assert.Equal(t, "assistant", events[0].Choices[0].Delta.Role)
	for _, e := range events {
		assert.Equal(t, "chat.completion.chunk", e.Object)
		text.WriteString(e.Choices[0].Delta.Content)
	}
	assert.Equal(t, got.Choices[0].Message.Content, text.String())
	assert.Equal(t, "length", *events[len(events)-1].Choices[0].Finish)
}

func TestErrors(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{})
	for name, tt := range map[string]struct {
		path, body  string
		status      int
		param, text string
	}{
		"no JSON":         {"", "{", 400, "", "no JSON object"},
		"more":            {"", `{"prompt": "a"} x`, 400, "", "more after"},
		"unknown":         {"", `{"prompt": "a", "max_token": 1}`, 400, "max_token", "no such parameter"},
		"type":            {"", `{"prompt": "a", "n": "two"}`, 400, "n", "given a string"},
		"no prompt":       {"", `{}`, 400, "prompt", "want a prompt"},
		"empty prompt":    {"", `{"prompt": ""}`, 400, "prompt", "at least one"},
		"prompt":          {"", `{"prompt": 5}`, 400, "prompt", "want a string"},
		"token":           {"", `{"prompt": [256]}`, 400, "prompt", "ids below 256"},
		"long prompt":     {"", `{"prompt": "` + strings.Repeat("a", 128) + `"}`, 400, "prompt", "fewer than the 128"},
		"model":           {"", `{"model": "gpt-4", "prompt": "a"}`, 404, "model", `want "tiny"`},
		"temperature":     {"", `{"prompt": "a", "temperature": -1}`, 400, "temperature", "given -1"},
		"hot":             {"", `{"prompt": "a", "temperature": 2.5}`, 400, "temperature", "from 0 to 2"},
		"NaN":             {"", `{"prompt": "a", "temperature": NaN}`, 400, "", "no JSON object"},
		"infinite":        {"", `{"prompt": "a", "temperature": 1e999}`, 400, "temperature", "given a number"},
		"no top_p":        {"", `{"prompt": "a", "top_p": 0}`, 400, "top_p", "above 0"},
		"large top_p":     {"", `{"prompt": "a", "top_p": 1.01}`, 400, "top_p", "at most 1"},
		"top_k":           {"", `{"prompt": "a", "top_k": -1}`, 400, "top_k", "given -1"},
		"no choices":      {"", `{"prompt": "a", "n": 0}`, 400, "n", "from 1 to 32"},
		"best_of":         {"", `{"prompt": "a", "best_of": 9}`, 400, "best_of", "want n"},
		"work":            {"", `{"prompt": "a", "n": 32, "max_tokens": 9223372036854775807}`, 400, "max_tokens", "4096 tokens in all, with their prompts, want at most 1024"},
		"long stop":       {"", `{"prompt": "a", "stop": "` + strings.Repeat("a", 5000) + `"}`, 400, "stop", "want at most 4096"},
		"far too long":    {"", `{"prompt": "` + strings.Repeat("a", 3<<20) + `"}`, 400, "prompt", "of which the first 2048 are 2048 tokens"},
		"long messages":   {"chat", `{"messages": [{"role": "user", "content": "` + strings.Repeat("a", 3<<20) + `"}]}`, 400, "messages", "of which the first 2048"},
		"max_tokens":      {"", `{"prompt": "a", "max_tokens": 0}`, 400, "max_tokens", "given 0"},
		"n":               {"", `{"prompt": "a", "n": 33}`, 400, "n", "from 1 to 32"},
		"choices":         {"", `{"prompt": ["a", "b"], "n": 17}`, 400, "n", "at most 32"},
		"penalty":         {"", `{"prompt": "a", "presence_penalty": 0.5}`, 400, "presence_penalty", "does not support"},
		"bias":            {"", `{"prompt": "a", "logit_bias": {"5": 1}}`, 400, "logit_bias", "does not support"},
		"echo":            {"", `{"prompt": "a", "echo": true}`, 400, "echo", "does not support"},
		"logprobs":        {"", `{"prompt": "a", "logprobs": 21}`, 400, "logprobs", "from 0 to 20"},
		"stop":            {"", `{"prompt": "a", "stop": 5}`, 400, "stop", "list of strings"},
		"stream options":  {"", `{"prompt": "a", "stream_options": {}}`, 400, "stream_options", "with stream"},
		"large":           {"", `{"prompt": "` + strings.Repeat("a", 5<<20) + `"}`, 413, "", "--max-body"},
		"no messages":     {"chat", `{}`, 400, "messages", "one or more"},
		"no role":         {"chat", `{"messages": [{"content": "a"}]}`, 400, "messages[0].role", "want a role"},
		"picture":         {"chat", `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400, "messages[0].content", "takes texts"},
		"no template":     {"chat", `{"messages": [{"role": "user", "content": "a"}]}`, 400, "messages", "no chat template"},
		"tools":           {"chat", `{"messages": [{"role": "user", "content": "a"}], "tools": [{}]}`, 400, "tools", "does not support"},
		"response format": {"chat", `{"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_object"}}`, 400, "response_format", "does not support"},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/v1/completions"
			if tt.path == "chat" {
				path = "/v1/chat/completions"
			}
			status, body := s.post(path, tt.body)
			assert.Equal(t, tt.status, status)
			var got completion
			require.NoError(t, json.Unmarshal([]byte(body), &got), body)
			assert.Equal(t, "invalid_request_error", got.Error.Type)
			assert.Equal(t, tt.param, got.Error.Param)
			assert.Contains(t, got.Error.Message, tt.text)
		})
	}
	status, body := s.post("/v1/completions", `{"prompt": "a", "max_tokens": 1, "presence_penalty": 0, "logit_bias": {}, "echo": false, "user": "u", "best_of": 1}`)
	assert.Equal(t, http.StatusOK, status, body)
}

func TestModels(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{})
	for path, want := range map[string]int{"/v1/models": 200, "/v1/models/tiny": 200, "/v1/models/other": 404} {
		resp, err := http.Get(s.base + path) //nolint:noctx // a test
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, resp.StatusCode, path)
		if want == 200 {
			assert.Contains(t, string(text), `"id":"tiny","object":"model"`)
			assert.Contains(t, string(text), `"chat_template":""`)
		} else {
			assert.Contains(t, string(text), "model_not_found")
		}
	}
}

// A client that goes away frees its slot; requests beyond the queue are told to come again.
func TestClientsThatLeaveAndWait(t *testing.T) {
	s := start(t, tokenizer.Byte{}, inference.Settings{Queue: 1, Capacity: 1 << 20})
	endless := `{"prompt": "a", "max_tokens": 1000000, "stream": true}`
	var all sync.WaitGroup
	stop := make(chan struct{})
	begin := func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v1/completions", strings.NewReader(endless))
		require.NoError(t, err)
		all.Go(func() {
			resp, err := http.DefaultClient.Do(req)
			if assert.NoError(t, err) {
				_, _ = io.ReadFull(resp.Body, make([]byte, 100))
				<-stop
				assert.NoError(t, resp.Body.Close())
			}
		})
	}
	load := func(active, waiting int) {
		require.Eventually(t, func() bool {
			a, w := s.engine.Load()
			return a == active && w == waiting
		}, time.Minute, time.Millisecond)
	}
	begin()
	load(1, 0)
	waiting := make(chan int, 1)
	all.Go(func() {
		got, _ := s.post("/v1/completions", `{"prompt": "a", "max_tokens": 2}`)
		waiting <- got
	})
	load(1, 1)
	status, body := s.post("/v1/completions", `{"prompt": "a"}`)
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.Contains(t, body, "rate_limit_exceeded")
	close(stop)
	assert.Equal(t, http.StatusOK, <-waiting, "the slot is free again")
	all.Wait()
	load(0, 0)
}

// The client of the npm package openai, which others wrote, understands the answers.
func TestNodeClient(t *testing.T) {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	modules := filepath.Join(cache, "primus-fl", "npm", "node_modules")
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(filepath.Join(modules, "openai")); err != nil || missing != nil {
		t.Skip("no node with the package openai; scripts/install-test-deps.sh installs it")
	}
	s := start(t, chatTokenizer(t), inference.Settings{Slots: 2})
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "client.cjs"), s.base+"/v1")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "ok\n", string(out))
}
