//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Of the drill of hostile clients.
const (
	hostileClients = 1000
	goodClients    = 10
	goodRequests   = 10 // of each good client, with the hostile ones and without them
	hostileRounds  = 3

	maxMemory   = 1 << 30 // that the service may use above what it has with the model
	maxFirstLag = 3       // by which the time to the first token may grow, in the 95th percentile

	// unnoticed is what the first token may take in any case: the model of the drill is so small that
	// three times as long is a few slices of a processor.
	unnoticed = 150 * time.Millisecond
)

// servedModel is small enough for two cores, whose tokens take a few milliseconds.
var servedModel = []string{
	"num_layers=4", "hidden_size=256", "ffn_hidden_size=512", "num_attention_heads=4", "num_query_groups=2", "seq_length=256",
	"save_interval=0", "eval_interval=1000000",
}

// hostile serves a model to ten good clients, alone and beside a thousand hostile ones.
func hostile(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	l.steps, l.args = 1, servedModel
	if err := l.finish(ctx); err != nil {
		return 0, err
	}
	s, err := l.serveModel(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Kill()
	before, err := s.use()
	if err != nil {
		return 0, err
	}
	most, best := int64(0), lag{is: time.Hour}
	for round := range hostileRounds { // the best of several, because other programs disturb both
		alone, err := s.goodOnes(ctx)
		if err != nil {
			return 0, fmt.Errorf("without hostile clients: %w", err)
		}
		beside, used, err := l.besideHostile(ctx, s, random.Uint64())
		if err != nil {
			return hostileClients, err
		}
		now := lag{percentile(alone, 0.95), percentile(beside, 0.95)}
		if now.excess() < best.excess() {
			best = now
		}
		most = max(most, used-before.memory)
		fmt.Fprintf(l.progress, "round %d: first token after %v alone and %v beside hostile clients in the median, %v and %v in the 95th percentile\n",
			round+1, percentile(alone, 0.5), percentile(beside, 0.5), now.was, now.is)
	}
	fmt.Fprintf(l.progress, "%.1f times as long in the 95th percentile of the best round; %d MiB above the model\n", best.is.Seconds()/best.was.Seconds(), most>>20)
	switch {
	case most > maxMemory:
		return hostileClients, fmt.Errorf("the service takes %d MiB more than before, want %d at most", most>>20, maxMemory>>20)
	case best.excess() > 1:
		return hostileClients, fmt.Errorf("in each of %d rounds the first token takes too long in the 95th percentile: in the best %v, want at most %d times %v, or %v", hostileRounds, best.is, maxFirstLag, best.was, unnoticed)
	}
	return hostileClients, s.isAsBefore(ctx, before)
}

// lag is how long the first token took within one round, without hostile clients and beside them.
// Only times of one round are compared, because the load of the machine changes.
type lag struct{ was, is time.Duration }

// excess returns how many times as long as allowed the first token took.
func (l lag) excess() float64 {
	return l.is.Seconds() / max(maxFirstLag*l.was, unnoticed).Seconds()
}

// besideHostile lets the good clients ask while the hostile ones attack. It also returns the most
// memory that the service took.
func (l *lab) besideHostile(ctx context.Context, s *served, seed uint64) (firsts []time.Duration, memory int64, err error) {
	attackers, err := l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, roleVariable+"="+roleHostile)
		cmd.Args = append(cmd.Args, strings.TrimPrefix(s.address, "http://"), strconv.FormatUint(seed, 10))
	})
	if err != nil {
		return nil, 0, err
	}
	defer attackers.Kill()
	attackers.Reach(allHere)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	most := make(chan int64, 1)
	go func() { most <- s.mostMemory(watched) }()
	firsts, err = s.goodOnes(ctx)
	stop()
	attackers.Process.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	_, ended := attackers.wait()
	return firsts, <-most, errors.Join(err, ended)
}

// serveModel serves the checkpoint of the run.
func (l *lab) serveModel(ctx context.Context) (*served, error) {
	p, err := l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "serve", "--listen", "127.0.0.1:0", "--model", l.path(), "--context", "256")
	})
	if err != nil {
		return nil, err
	}
	p.Reach("texts of 256 tokens at once")
	address := servedAt.FindString(p.Log.String())
	if address == "" {
		return nil, fmt.Errorf("no service\n%s", p.Tail())
	}
	return &served{p, address}, nil
}

// from returns a client with an address of its own on this machine.
func from(address string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dialer.DialContext}}
}

// goodOnes lets the good clients ask, and returns how long each first token took. A request without
// its whole answer is an error.
func (s *served) goodOnes(ctx context.Context) (firsts []time.Duration, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range goodClients {
		all.Go(func() {
			client := from(fmt.Sprintf("127.9.0.%d", i+1))
			defer client.CloseIdleConnections()
			for n := range goodRequests {
				took, failed := s.firstToken(ctx, client, fmt.Sprintf("The square of %d is ", 100*i+n))
				mu.Lock()
				if firsts = append(firsts, took); err == nil {
					err = failed
				}
				mu.Unlock()
				pause(ctx, time.Second)
			}
		})
	}
	all.Wait()
	return firsts, err
}

// firstToken asks for a text and returns after what time its first token came.
func (s *served) firstToken(ctx context.Context, client *http.Client, prompt string) (time.Duration, error) {
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": 8, "stream": true}`, prompt)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/v1/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	began := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("a good client: %w", err)
	}
	defer answer.Body.Close()
	first := time.Duration(0)
	var text bytes.Buffer
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if first == 0 {
			first = time.Since(began)
		}
		fmt.Fprintln(&text, lines.Text())
	}
	if answer.StatusCode != http.StatusOK || !strings.HasSuffix(strings.TrimSpace(text.String()), "data: [DONE]") {
		return 0, fmt.Errorf("a good client was given %s and %.300q, want a whole text", answer.Status, text.String())
	}
	return first, nil
}

func percentile(all []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)].Round(100 * time.Microsecond)
}

// use is what a service holds.
type use struct {
	memory                  int64 // bytes
	goroutines, files, heap float64
}

var gauges = regexp.MustCompile(`(?m)^(go_goroutines|process_open_fds|go_memstats_heap_alloc_bytes) (\S+)$`)

// use asks the service what it holds.
func (s *served) use() (u use, err error) {
	client := from("127.9.1.1")
	defer client.CloseIdleConnections()
	code, text, err := s.ask(client, http.MethodGet, "/metrics", "", false)
	if err != nil || code != http.StatusOK {
		return u, fmt.Errorf("GET /metrics: %d %w", code, err)
	}
	for _, m := range gauges.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return u, err
		}
		switch m[1] {
		case "go_goroutines":
			u.goroutines = value
		case "process_open_fds":
			u.files = value
		default:
			u.heap = value
		}
	}
	u.memory = s.resident()
	return u, nil
}

// resident returns the memory of the process, 0 when it has ended.
func (s *served) resident() int64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.Process.Process.Pid), "statm"))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// mostMemory returns the most memory that the process has had until ctx ends.
func (s *served) mostMemory(ctx context.Context) (most int64) {
	for ctx.Err() == nil {
		most = max(most, s.resident())
		pause(ctx, 50*time.Millisecond)
	}
	return most
}

// isAsBefore waits until the service holds no more than before the attack.
func (s *served) isAsBefore(ctx context.Context, before use) error {
	const (
		few       = 4        // goroutines and descriptors, such as those of the request for metrics
		fewBytes  = 32 << 20 // that the heap may vary by
		patience  = time.Minute
		lookEvery = 500 * time.Millisecond
	)
	var now use
	for until := time.Now().Add(patience); time.Now().Before(until); pause(ctx, lookEvery) {
		var err error
		if now, err = s.use(); err != nil {
			return err
		}
		if now.goroutines <= before.goroutines+few && now.files <= before.files+few && now.heap <= before.heap+fewBytes {
			return nil
		}
	}
	return fmt.Errorf("after the attack: %.0f goroutines, %.0f descriptors and %.0f MiB of heap, before it %.0f, %.0f and %.0f",
		now.goroutines, now.files, now.heap/(1<<20), before.goroutines, before.files, before.heap/(1<<20))
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// allHere is what hostile clients print when all of them have begun.
const allHere = "all clients are here"

// beHostile attacks the service at an address until it is interrupted. It takes the processors only
// when nobody else wants them, because the service would have them for itself on another machine.
func beHostile(args []string) int {
	if len(args) != 2 {
		fmt.Fprintf(os.Stderr, "chaos: given %q, want an address and a seed\n", args)
		return 2
	}
	seed, err := strconv.ParseUint(args[1], 10, 64)
	if err == nil {
		err = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var begun, all sync.WaitGroup
	begun.Add(hostileClients)
	for i := range hostileClients {
		kind := badKinds[i%len(badKinds)]
		all.Go(func() {
			c := &attacker{service: args[0], address: fmt.Sprintf("127.8.0.%d", i%len(badKinds)+1), random: rand.New(rand.NewPCG(seed, uint64(i)))}
			once := sync.OnceFunc(begun.Done)
			for ctx.Err() == nil {
				c.attack(ctx, kind)
				once()
				pause(ctx, time.Duration(500+c.random.IntN(500))*time.Millisecond)
			}
			once()
		})
	}
	begun.Wait()
	fmt.Fprintln(os.Stderr, allHere)
	all.Wait()
	return 0
}

// attacker is a hostile client.
type attacker struct {
	service, address string
	random           *rand.Rand
}

// badKind is a kind of hostile client: what it sends, and what it does then.
type badKind struct {
	name string
	send func(*attacker) []byte
	then func(context.Context, net.Conn)
}

// post returns a request for texts, with a length that may be another than that of the body.
func post(path string, body []byte, length int) []byte {
	return append(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, length), body...)
}

func completion(body string) []byte { return post("/v1/completions", []byte(body), len(body)) }

// readAll reads whatever comes, for as long as anything comes.
func readAll(_ context.Context, c net.Conn) {
	c.SetReadDeadline(time.Now().Add(10 * time.Second)) // an error shows at the read
	io.Copy(io.Discard, c)                              // any end is fine
}

// keepOpen neither reads nor writes for a while.
func keepOpen(ctx context.Context, _ net.Conn) { pause(ctx, 10*time.Second) }

var badKinds = []badKind{
	{"slow headers", func(*attacker) []byte { return []byte("POST /v1/completions HTTP/1.1\r\nHost: local") }, drip},
	{"half a body", func(*attacker) []byte {
		return post("/v1/completions", bytes.Repeat([]byte("x"), 64<<10), 1<<20)
	}, keepOpen},
	{"giant headers", func(*attacker) []byte {
		return append([]byte("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: "), bytes.Repeat([]byte("y"), 4<<20)...)
	}, readAll},
	{"many choices", func(*attacker) []byte { return completion(`{"prompt": "a", "n": 128, "max_tokens": 255}`) }, readAll},
	{"a stream that nobody reads", func(*attacker) []byte {
		return completion(`{"prompt": "a", "max_tokens": 255, "stream": true, "logprobs": 5}`)
	}, keepOpen},
	{"cancels", func(*attacker) []byte { return completion(`{"prompt": "a", "max_tokens": 255, "stream": true}`) }, func(ctx context.Context, c net.Conn) {
		c.SetReadDeadline(time.Now().Add(time.Second)) // an error shows at the read
		c.Read(make([]byte, 1))                        // it leaves either way
	}},
	{"long prompts", func(*attacker) []byte {
		return completion(`{"prompt": "` + strings.Repeat("all work and no play ", 50_000) + `", "max_tokens": 4}`)
	}, readAll},
	{"deep values", func(*attacker) []byte { return completion(`{"prompt": ` + strings.Repeat("[", 1<<19)) }, readAll},
	{"long conversations", func(*attacker) []byte {
		body := `{"messages": [` + strings.Repeat(`{"role": "user", "content": "a"},`, 20_000) + `{"role": "user", "content": "b"}]}`
		return post("/v1/chat/completions", []byte(body), len(body))
	}, readAll},
	{"many stops", func(*attacker) []byte {
		return completion(`{"prompt": "a", "max_tokens": 255, "stop": [` + strings.Repeat(`"never",`, 50_000) + `"b"]}`)
	}, readAll},
	{"wrong numbers", func(a *attacker) []byte {
		return completion([]string{`{"prompt": "a", "temperature": 1e309}`, `{"prompt": "a", "top_p": -1}`, `{"prompt": "a", "n": 9223372036854775807}`, `{"prompt": "a", "max_tokens": -1}`}[a.random.IntN(4)])
	}, readAll},
	{"silence", func(*attacker) []byte { return nil }, keepOpen},
}

// drip sends a byte per second.
func drip(ctx context.Context, c net.Conn) {
	for range 10 {
		if _, err := c.Write([]byte("h")); err != nil {
			return
		}
		pause(ctx, time.Second)
	}
}

// attack connects once. The service may refuse and end that at any time.
func (a *attacker) attack(ctx context.Context, kind badKind) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.address)}, Timeout: 10 * time.Second}
	c, err := dialer.DialContext(ctx, "tcp", a.service)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // an error shows at the write
	if _, err := c.Write(kind.send(a)); err != nil {
		return
	}
	kind.then(ctx, c)
}
