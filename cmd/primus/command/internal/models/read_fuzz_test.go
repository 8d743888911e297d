package models

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/stretchr/testify/require"
)

// FuzzPrompts reads prompts from standard input, of text or of JSON: each is one that can be
// generated from, at a cost in proportion to the length.
func FuzzPrompts(f *testing.F) {
	for _, text := range []string{
		"one\r\n\n two ", `{"prompt": "a", "max_tokens": 3, "temperature": 0.5, "top_k": 2, "top_p": 0.1, "seed": 7, "stop": ["x"]}`,
		`{"prompt": "a", "temperature": -1}`, `{"prompt": null}`, `{"prompt": ""}`, "{", "{}\n\"b\"", `{"prompt": "a", "seed": -1}`, `{"stop": null, "prompt": "a", "top_p": 0}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o := generateOptions{prompts: "-", maxTokens: 16}
		o.Sampling.TopP = 1
		var all []generateRequest
		var err error
		primustest.Cost(t, len(text), 1000, func() { all, err = o.read(bytes.NewReader(text)) })
		if err != nil {
			return
		}
		require.NotEmpty(t, all)
		for _, r := range all {
			require.NotEmpty(t, r.Prompt)
			require.NoError(t, r.Validate())
		}
	})
}

// service gives every request the same reply.
type service []byte

func (s service) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s))}, nil
}

// FuzzAnswer reads what a service streams: its texts are no longer than what was sent, and an
// answer that does not end is an error.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\ndata: [DONE]\n", "data: {\"choices\": [{\"text\": \"a\"}, {}]}\r\n", "data: {\"error\": {\"message\": \"no\\u001b[2J\"}}\n",
		": comment\ndata: null\ndata: []", "data: {", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &remote{chatOptions: &chatOptions{}, base: "http://a", client: &http.Client{Transport: service(text)}}
		var said strings.Builder
		var err error
		primustest.Cost(t, len(text), 1000, func() {
			err = r.answer(t.Context(), []chat.Message{{Role: "user", Content: "a"}}, func(text string) error {
				said.WriteString(text)
				return nil
			})
		})
		require.LessOrEqual(t, said.Len(), 3*len(text))
		if err == nil {
			require.Contains(t, string(text), "data: [DONE]")
		}
	})
}

// A line of any length up to the limit is read, and one beyond it ends the input with an error.
func TestReadLine(t *testing.T) {
	const limit = 10_000 // more than the buffer
	for _, size := range []int{0, 1, 4095, 4096, 4097, limit - 1} {
		from := bufio.NewReader(strings.NewReader(strings.Repeat("x", size) + "\nlast"))
		line, err := readLine(from, limit)
		require.NoError(t, err)
		require.Len(t, line, size+1)
		line, err = readLine(from, limit)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "last", line)
	}
	line, err := readLine(bufio.NewReader(strings.NewReader(strings.Repeat("x", 2*limit))), limit)
	require.EqualError(t, err, "standard input has a line of more than 10000 bytes")
	require.Empty(t, line)
}
