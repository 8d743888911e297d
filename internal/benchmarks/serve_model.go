package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/primus-fl/primus/internal/program"
	"github.com/primus-fl/primus/internal/stats"
)

// serveModelOptions are the flags of serve-model.
type serveModelOptions struct {
	generateOptions
	clients []int
	prompt  int
	output  string
}

// modelServer is one way to serve a model.
type modelServer struct {
	name  string
	line  func(clients int, port string) []string // the command that serves so many clients
	ready string                                  // the path that answers when the model is loaded
	more  map[string]any                          // parameters of a request
	limit int                                     // texts at once; 0 sets no limit
}

// servedTurn is what clients of a server got.
type servedTurn struct {
	Speed float64 `json:"tokens_per_second"`
	First float64 `json:"first_token_seconds"` // of a request beside them, the median
}

// servedRow is the result for a server and a number of clients.
type servedRow struct {
	Server  string  `json:"server"`
	Clients int     `json:"clients"`
	Speed   float64 `json:"tokens_per_second"`
	First   float64 `json:"first_token_seconds"`
	Ratio   float64 `json:"primus_beside_it"` // of the speeds

	turns []servedTurn
}

// serveModel compares `primus serve --model` with llama.cpp's server: tokens per second of clients
// that all generate, and how long one more request waits for its first token meanwhile. Weights and
// cache are f32, prompts are tokens that no request before had. Figures are medians over the
// rounds, and ratios are of one round.
func serveModel(ctx context.Context, args []string, out, progress io.Writer) error {
	var o serveModelOptions
	var clients string
	flags := newFlags("serve-model", progress)
	primusFlag(flags, &o.primus)
	formatFlag(flags, &o.output)
	flags.StringVar(&o.model, "model", "llama_30M", "an example of a Llama, such as llama_2M or llama_6M")
	flags.StringVar(&o.llama, "llama-server", "bin/llama.cpp/build/bin/llama-server", "llama.cpp's server, which `make llama-server` builds")
	flags.StringVar(&clients, "clients", "1,8,32", "how many clients generate at once")
	flags.IntVar(&o.tokens, "tokens", 64, "tokens of a text")
	flags.IntVar(&o.prompt, "prompt", 64, "tokens of a prompt")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each server has its turn")
	flags.IntVar(&o.threads, "threads", runtime.NumCPU(), "CPU threads")
	if err := parse(flags, args); err != nil {
		return err
	}
	if o.tokens < 1 || o.prompt < 1 || o.rounds < 1 || o.threads < 1 {
		return errors.New("want at least one token, round and thread")
	}
	for text := range strings.SplitSeq(clients, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-clients: given %q, want numbers of clients such as 1,8,32", clients)
		}
		o.clients = append(o.clients, n)
	}
	dir, err := os.MkdirTemp("", "bench-serve-model")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	checkpoint, err := o.checkpoint(ctx, dir)
	if err != nil {
		return err
	}
	servers := []modelServer{o.primusServer("primus", checkpoint), o.primusServer("primus, batch invariant", checkpoint, "--batch-invariant")}
	servers[1].limit = 8
	peer, err := o.llamaServer(ctx, dir, checkpoint)
	switch {
	case errors.Is(err, errAbsent):
		fmt.Fprintln(progress, err)
	case err != nil:
		return err
	default:
		servers = append(servers, peer)
	}
	var rows []*servedRow
	for _, n := range o.clients {
		for _, s := range servers {
			rows = append(rows, &servedRow{Server: s.name, Clients: n})
		}
	}
	for round := range o.rounds {
		for i, row := range rows {
			turn, err := o.turn(ctx, servers[i%len(servers)], row.Clients, round)
			if err != nil {
				return fmt.Errorf("%s, %d clients: %w", row.Server, row.Clients, err)
			}
			row.turns = append(row.turns, turn)
			fmt.Fprintf(progress, "round %d: %s, %d clients: %.0f tokens/s, first token after %.0f ms\n", round+1, row.Server, row.Clients, turn.Speed, 1000*turn.First)
		}
	}
	compareServers(rows, len(servers))
	return write(out, o.output, rows, func(w io.Writer) error { return o.table(w, rows) })
}

// compareServers computes the figures of rows, of which each group has the turns of all servers,
// the first of which is compared with the others.
func compareServers(rows []*servedRow, servers int) {
	for i, row := range rows {
		ours := rows[i-i%servers]
		var speeds, firsts, ratios []float64
		for round, turn := range row.turns {
			speeds, firsts = append(speeds, turn.Speed), append(firsts, turn.First)
			ratios = append(ratios, ours.turns[round].Speed/turn.Speed)
		}
		row.Speed, row.First, row.Ratio = stats.Median(speeds), stats.Median(firsts), stats.Median(ratios)
	}
}

func (o *serveModelOptions) table(out io.Writer, rows []*servedRow) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s, %d+%d tokens\tclients\ttokens/s\tfirst token\tprimus beside it\n", o.model, o.prompt, o.tokens)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f ms\t%.2f\n", r.Server, r.Clients, r.Speed, 1000*r.First, r.Ratio)
	}
	return t.Flush()
}

func (o *serveModelOptions) primusServer(name, checkpoint string, more ...string) modelServer {
	return modelServer{name: name, ready: "/readyz", line: func(clients int, port string) []string {
		return append([]string{
			o.primus, "serve", "--model", checkpoint, "--listen", "127.0.0.1:" + port, "--parallel", strconv.Itoa(clients),
			"--client-requests", "1000", "--threads", strconv.Itoa(o.threads), "--prefer", "flagos", "--deny-vendors", "*",
		}, more...)
	}}
}

// llamaServer returns llama.cpp's server, with an error that is errAbsent where it is not.
func (o *serveModelOptions) llamaServer(ctx context.Context, dir, checkpoint string) (modelServer, error) {
	if _, err := os.Stat(o.llama); err != nil {
		return modelServer{}, fmt.Errorf("llama.cpp: %w: %w; run make llama-server, or give -llama-server", errAbsent, err)
	}
	file := filepath.Join(dir, "model.gguf")
	if out, err := exec.CommandContext(ctx, o.primus, "export", "--checkpoint", checkpoint, "--format", "gguf", "--dtype", "f32", "-o", file).CombinedOutput(); err != nil {
		return modelServer{}, fmt.Errorf("export for llama.cpp: %w\n%s", err, out)
	}
	threads := strconv.Itoa(o.threads)
	return modelServer{name: "llama.cpp", ready: "/health", more: map[string]any{"ignore_eos": true, "cache_prompt": false}, line: func(clients int, port string) []string {
		return []string{
			o.llama, "--model", file, "--host", "127.0.0.1", "--port", port, "--parallel", strconv.Itoa(clients), "--ctx-size", strconv.Itoa(clients * o.capacity()),
			"--threads", threads, "--threads-batch", threads, "--cache-type-k", "f32", "--cache-type-v", "f32",
		}
	}}, nil
}

// capacity is the number of tokens of a text with its prompt, in whole blocks of llama.cpp's cache.
func (o *serveModelOptions) capacity() int { return (o.prompt + o.tokens + 255) / 256 * 256 }

// turn starts a server and measures it.
func (o *serveModelOptions) turn(ctx context.Context, s modelServer, clients, round int) (servedTurn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return servedTurn{}, err
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		return servedTurn{}, err
	}
	slots := clients + 1 // one for requests beside the clients
	if s.limit > 0 {
		slots = min(slots, s.limit)
	}
	line := s.line(slots, port)
	p, err := program.Start(exec.Command(line[0], line[1:]...))
	if err != nil {
		return servedTurn{}, err
	}
	defer p.Kill()
	base := "http://127.0.0.1:" + port
	if err := ready(ctx, p, base+s.ready); err != nil {
		return servedTurn{}, err
	}
	turn, err := o.load(ctx, s, base, clients, rand.New(rand.NewPCG(uint64(clients), uint64(round))))
	if err != nil {
		return servedTurn{}, fmt.Errorf("%w\n%s", err, p.Tail())
	}
	return turn, nil
}

// maxStart is the time after which a server counts as one that does not start.
const maxStart = time.Minute

// ready waits until a path answers with 200.
func ready(ctx context.Context, p *program.Process, url string) error {
	for began := time.Now(); ; {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !p.Running() || time.Since(began) > maxStart {
			return fmt.Errorf("the server does not start: %s", p.Tail())
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// textsEach is how many texts a client asks for, one after the other, after one that is not
// counted.
const textsEach = 2

// load makes clients generate, and meanwhile asks for single tokens.
func (o *serveModelOptions) load(ctx context.Context, s modelServer, base string, clients int, r *rand.Rand) (servedTurn, error) {
	requests := make([][]byte, clients*(textsEach+1))
	for i := range requests {
		requests[i] = o.request(s, r, o.tokens)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := func(texts int) {
		var wait sync.WaitGroup
		for client := range clients {
			mine := requests[client*texts:][:texts]
			wait.Go(func() {
				for _, body := range mine {
					if err := o.ask(ctx, base, body, o.tokens); err != nil {
						cancel(err)
					}
				}
			})
		}
		wait.Wait()
	}
	all(1)
	requests = requests[clients:]
	done, probed := make(chan struct{}), make(chan []float64)
	go func() {
		var firsts []float64
		for {
			began := time.Now()
			err := o.ask(ctx, base, o.request(s, r, 1), 1)
			select {
			case <-done:
				probed <- firsts
				return
			default:
			}
			if err != nil {
				cancel(err)
			}
			firsts = append(firsts, time.Since(began).Seconds())
			_ = sleep(ctx, 50*time.Millisecond)
		}
	}()
	began := time.Now()
	all(textsEach)
	took := time.Since(began).Seconds()
	close(done)
	firsts := <-probed
	if ctx.Err() != nil {
		return servedTurn{}, context.Cause(ctx)
	}
	turn := servedTurn{Speed: float64(clients*textsEach*o.tokens) / took}
	if len(firsts) > 0 {
		turn.First = stats.Median(firsts)
	}
	return turn, nil
}

// request returns the body of a request with a new prompt.
func (o *serveModelOptions) request(s modelServer, r *rand.Rand, tokens int) []byte {
	prompt := make([]int, o.prompt)
	for i := range prompt {
		prompt[i] = 'a' + r.IntN(26)
	}
	body := map[string]any{"prompt": prompt, "max_tokens": tokens, "temperature": 0}
	for name, value := range s.more {
		body[name] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic("BUG: benchmarks: " + err.Error())
	}
	return text
}

// ask asks for a text of some tokens.
func (o *serveModelOptions) ask(ctx context.Context, base string, body []byte, tokens int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Usage struct {
			Tokens int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Usage.Tokens != tokens {
		return fmt.Errorf("given status %d and %s, want %d tokens", response.StatusCode, text[:min(len(text), 300)], tokens)
	}
	return nil
}
