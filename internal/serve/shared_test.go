package serve_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/stretchr/testify/assert"
)

// maker takes a time for each answer, and numbers them.
type maker struct {
	takes      time.Duration
	made       int
	generation uint64
	shared     http.Handler
}

func newMaker(takes time.Duration) *maker {
	m := &maker{takes: takes}
	m.shared = serve.NewShared(m, func() uint64 { return m.generation })
	return m
}

func (m *maker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(m.takes)
	m.made++
	switch r.URL.Path {
	case "/v1/none":
		w.WriteHeader(http.StatusNotFound)
	case "/v1/broken":
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Path", r.URL.Path)
	fmt.Fprint(w, m.made)
}

func (m *maker) ask(path string, headers ...string) string {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	m.shared.ServeHTTP(w, r)
	return w.Body.String()
}

func TestFewClientsAreAnsweredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(4 * time.Millisecond)
		for i := range 50 {
			assert.Equal(t, fmt.Sprint(i+1), m.ask("/v1/ops"))
		}
		time.Sleep(time.Minute)
		assert.Equal(t, "51", m.ask("/v1/ops"))
	})
}

func TestManyClientsShareAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(20 * time.Millisecond)
		tenMinutes := func() map[string]int {
			made := map[string]int{}
			for range 6000 {
				for _, path := range []string{"/metrics", "/v1/ops/swiglu/explain", "/healthz"} {
					before := m.made
					m.ask(path)
					made[path] += m.made - before
				}
				time.Sleep(100 * time.Millisecond)
			}
			return made
		}
		tenMinutes()
		made := tenMinutes()
		assert.InDelta(t, 360, made["/metrics"], 20, "one in two seconds")
		assert.Zero(t, made["/v1/ops/swiglu/explain"], "decisions are shared until there are others")
		assert.Equal(t, 6000, made["/healthz"], "says how the service is now")
		m.generation++
		assert.Equal(t, 1, tenMinutes()["/v1/ops/swiglu/explain"])
	})
}

func TestQuestionsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMaker(time.Second) // answers are shared from the second on
		m.ask("/v1/runs")
		first := m.ask("/v1/ops")
		assert.Equal(t, first, m.ask("/v1/ops"))
		assert.NotEqual(t, first, m.ask("/v1/ops?a=b"))
		assert.NotEqual(t, first, m.ask("/v1/ops", "Accept", "text/plain"))
		assert.NotEqual(t, first, m.ask("/v1/ops", "Accept-Encoding", "gzip"))
		made := m.made
		m.ask("/v1/none")
		m.ask("/v1/none")
		assert.Equal(t, made+2, m.made, "a refusal is for one client")
		for range 2 {
			assert.Panics(t, func() { m.ask("/v1/broken") }, "and holds up nobody")
		}
	})
}

// Who asks while an answer is made gets the next one, together with all others who do.
func TestClientsWaitForOneAnswer(t *testing.T) {
	m := newMaker(50 * time.Millisecond)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			<-start
			m.ask("/v1/ops")
		})
	}
	close(start)
	wg.Wait()
	assert.LessOrEqual(t, m.made, 3)
}

// However many ask, a change of policy is seen at once.
func TestSharedAnswersFollowThePolicy(t *testing.T) {
	b := newBench(t, nil)
	selected := func() string { return read[opmanager.Explanation](b, "/v1/ops/residual_add/explain").Selected }
	for range 100 {
		b.ask(http.MethodGet, "/v1/explain?layer=1", "")
	}
	assert.Equal(t, "default.flagos", selected())
	_, err := b.setLayer(opmanager.LayerService, "prefer: reference")
	assert.NoError(t, err)
	assert.Equal(t, "reference.go", selected())
}
