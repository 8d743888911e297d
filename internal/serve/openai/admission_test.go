package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/serve/openai"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// half begins a request of a client whose body has size bytes, of which sent come.
func (s *service) half(client string, size, sent int) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://")) //nolint:noctx // a test
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: a\r\nX-Client: %s\r\nContent-Length: %d\r\n\r\n%s", client, size, strings.Repeat(" ", sent))
	require.NoError(s.t, err)
	return conn
}

// status returns the status and the header Retry-After of the answer on a connection.
func status(conn net.Conn) (string, error) {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusTooManyRequests {
		return string(text), err
	}
	return fmt.Sprintf("%d after %s", resp.StatusCode, resp.Header.Get("Retry-After")), err
}

func (s *service) postAs(client, body string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+"/v1/completions", strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("X-Client", client)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// What has been announced costs nothing, and what has come counts: of those who hold too much
// together, the one who holds the most gives way, and others are served all the time.
func TestBodiesThatDoNotEnd(t *testing.T) {
	s := startLimited(t, tokenizer.Byte{}, inference.Settings{}, openai.Limits{Body: 32 << 10, Bodies: 64 << 10, Requests: 8})
	const good = `{"prompt": "a", "max_tokens": 1}`
	for range 6 {
		s.half("announces", 32<<10, 10)
	}
	assert.Equal(t, http.StatusOK, s.postAs("good", good))
	var greedy []net.Conn
	for range 4 {
		greedy = append(greedy, s.half("greedy", 32<<10, 30<<10))
	}
	refused := make(chan string, len(greedy))
	var all sync.WaitGroup
	for _, conn := range greedy {
		all.Go(func() {
			if answer, err := status(conn); err == nil { // else it was not refused until the end
				refused <- answer
			}
		})
	}
	assert.Equal(t, "429 after 1", <-refused, "four bodies are too many")
	padded := good + strings.Repeat(" ", 30<<10-len(good))
	for range 20 {
		assert.Equal(t, http.StatusOK, s.postAs("good", padded))
	}
	assert.Equal(t, http.StatusOK, s.postAs("announces", good))
	for _, conn := range greedy {
		assert.NoError(t, conn.Close())
	}
	all.Wait()
	close(refused)
	for answer := range refused {
		assert.Equal(t, "429 after 1", answer)
	}
}

func TestRequestsOfAClient(t *testing.T) {
	s := startLimited(t, tokenizer.Byte{}, inference.Settings{}, openai.Limits{Body: 1 << 10, Bodies: 1 << 20, Requests: 2})
	const good = `{"prompt": "a", "max_tokens": 1}`
	type answer struct {
		conn net.Conn
		text string
	}
	answers := make(chan answer)
	var conns []net.Conn
	for range 3 {
		conn := s.half("a", 100, 0)
		conns = append(conns, conn)
		go func() {
			if text, err := status(conn); err == nil { // else it was closed at the end
				answers <- answer{conn, text}
			}
		}()
	}
	refused := <-answers
	assert.Equal(t, "429 after 1", refused.text, "two of three are served")
	assert.Equal(t, http.StatusOK, s.postAs("b", good))
	waiting := slices.DeleteFunc(conns, func(c net.Conn) bool { return c == refused.conn })
	require.NoError(t, waiting[0].Close())
	require.Eventually(t, func() bool { return s.postAs("a", good) == http.StatusOK }, time.Minute, time.Millisecond)
}
