package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/rundir/tensorboard"
)

// The limits of the API, and those of a Client.
const (
	maxMetrics = 1000 // of a batch
	maxParams  = 100  // of a batch
	maxValue   = 6000 // bytes of a parameter
	maxKey     = 250
	maxQueue   = 100_000 // metrics that wait

	sendEvery = time.Second
	timeout   = 10 * time.Second // of a request
	maxReply  = 1 << 20
)

// Settings describe a run.
type Settings struct {
	URI        string // http:// or https://
	Experiment string
	Name       string
	RunID      string // of a run that goes on; "" begins one
	Params     []Param
	Token      string // sent as a bearer token; "" for none
	User       string // with Password, for basic authentication
	Password   string
	Warn       func(text string)
	Started    func(runID string) // is called once the run has begun; nil for nothing
	Flush      time.Duration      // how long Close waits for the server; 0 means 10 s
}

// Param is a parameter of a run.
type Param struct{ Key, Value string }

// Client sends a run.
type Client struct {
	set  Settings
	base string
	http *http.Client

	mu      sync.Mutex
	queue   []metric
	dropped int
	sent    int
	fault   error // of the last request; nil if it succeeded
	warned  bool
	runID   string

	wake  chan struct{}
	end   chan struct{}
	ended chan struct{}
	final outcome
}

type outcome struct {
	failed bool
	until  time.Time
}

type metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"` // milliseconds
	Step      int64   `json:"step"`
}

// Open begins a run. It does not wait for the server; a URI that is none is an error.
func Open(s Settings) (*Client, error) {
	u, err := url.Parse(s.URI)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("mlflow: mlflow_tracking_uri: given %q, want http://HOST:PORT or https://HOST", redacted(s.URI))
	}
	if s.Flush == 0 {
		s.Flush = timeout
	}
	c := &Client{
		set: s, base: strings.TrimRight(u.String(), "/"), http: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: timeout},
		wake: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{}),
	}
	go c.run()
	return c, nil
}

// redacted returns a URI without its password.
func redacted(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "a text that is no URI"
	}
	return u.Redacted()
}

// Log queues the values of a step.
func (c *Client) Log(step int64, at time.Time, values ...tensorboard.Scalar) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		if len(c.queue) >= maxQueue {
			c.dropped++
			continue
		}
		c.queue = append(c.queue, metric{v.Tag, v.Value, at.UnixMilli(), step})
	}
	if len(c.queue) >= maxMetrics {
		select {
		case c.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

// Close sends what is left, for as long as the settings allow, and the end of the run. It returns
// one line on what became of the run. Further calls return "".
func (c *Client) Close(failed bool) string {
	c.mu.Lock()
	select {
	case <-c.end:
		c.mu.Unlock()
		return ""
	default:
	}
	c.final = outcome{failed, time.Now().Add(c.set.Flush)}
	close(c.end)
	c.mu.Unlock()
	<-c.ended
	c.http.CloseIdleConnections()
	lost := c.dropped + len(c.queue)
	switch {
	case c.fault != nil && c.runID == "":
		return fmt.Sprintf("%s was not reached, and %d metrics are lost: %v", redacted(c.base), lost, c.fault)
	case lost > 0:
		return fmt.Sprintf("run %s of %s, of which %d metrics are lost: %v", c.runID, redacted(c.base), lost, c.fault)
	case c.fault != nil:
		return fmt.Sprintf("run %s of %s: %v", c.runID, redacted(c.base), c.fault)
	}
	return fmt.Sprintf("run %s of %s, %d metrics", c.runID, redacted(c.base), c.sent)
}

// run sends until the end.
func (c *Client) run() {
	defer close(c.ended)
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	wait := time.Duration(0) // after a failure
	next := time.Now()
	for {
		if now := time.Now(); !now.Before(next) {
			if err := c.send(context.Background()); err != nil {
				wait = min(max(2*wait, sendEvery), time.Minute)
				next = now.Add(wait)
			} else {
				wait = 0
			}
		}
		select {
		case <-c.wake:
		case <-tick.C:
		case <-c.end:
			ctx, cancel := context.WithDeadline(context.Background(), c.final.until)
			defer cancel()
			if c.send(ctx) == nil {
				c.finish(ctx)
			}
			return
		}
	}
}

// send begins the run if it has not begun, and sends what is queued.
func (c *Client) send(ctx context.Context) (err error) {
	defer func() { c.note(err) }()
	if c.runID == "" {
		if err := c.begin(ctx); err != nil {
			return err
		}
	}
	for {
		c.mu.Lock()
		part := c.queue[:min(len(c.queue), maxMetrics)]
		c.mu.Unlock()
		if len(part) == 0 {
			return nil
		}
		if err := c.post(ctx, "runs/log-batch", map[string]any{"run_id": c.runID, "metrics": part}, nil); err != nil {
			return err
		}
		c.mu.Lock()
		c.queue = c.queue[len(part):]
		c.sent += len(part)
		c.mu.Unlock()
	}
}

// note keeps the result of a request and warns of the first failure.
func (c *Client) note(err error) {
	c.mu.Lock()
	c.fault = err
	warn := err != nil && !c.warned
	c.warned = c.warned || err != nil
	c.mu.Unlock()
	if warn && c.set.Warn != nil {
		c.set.Warn(fmt.Sprintf("MLflow at %s does not take metrics, which wait until it does; training goes on: %v", redacted(c.base), err))
	}
}

// begin finds or creates the experiment and begins the run, or lets one go on.
func (c *Client) begin(ctx context.Context) error {
	if c.set.RunID != "" {
		if err := c.post(ctx, "runs/update", map[string]any{"run_id": c.set.RunID, "status": "RUNNING"}, nil); err == nil {
			c.runID = c.set.RunID
			return nil
		}
	}
	experiment, err := c.experiment(ctx)
	if err != nil {
		return err
	}
	var created struct {
		Run struct {
			Info struct {
				RunID string `json:"run_id"`
			} `json:"info"`
		} `json:"run"`
	}
	err = c.post(ctx, "runs/create", map[string]any{
		"experiment_id": experiment, "run_name": c.set.Name, "start_time": time.Now().UnixMilli(),
		"tags": []map[string]string{{"key": "mlflow.runName", "value": c.set.Name}, {"key": "mlflow.source.name", "value": "primus"}},
	}, &created)
	if err != nil {
		return err
	}
	if created.Run.Info.RunID == "" {
		return errors.New("mlflow: runs/create: the reply has no run_id")
	}
	if err := c.params(ctx, created.Run.Info.RunID); err != nil {
		return err
	}
	c.runID = created.Run.Info.RunID
	if c.set.Started != nil {
		c.set.Started(c.runID)
	}
	return nil
}

// params sends the parameters.
func (c *Client) params(ctx context.Context, run string) error {
	type param struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	var all []param
	for _, p := range c.set.Params {
		if len(p.Key) <= maxKey {
			all = append(all, param{p.Key, strings.ToValidUTF8(p.Value[:min(len(p.Value), maxValue)], "")})
		}
	}
	for len(all) > 0 {
		n := min(len(all), maxParams)
		if err := c.post(ctx, "runs/log-batch", map[string]any{"run_id": run, "params": all[:n]}, nil); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// experiment returns the id of the experiment.
func (c *Client) experiment(ctx context.Context) (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	err := c.do(ctx, http.MethodGet, "experiments/get-by-name?experiment_name="+url.QueryEscape(c.set.Experiment), nil, &found)
	if err == nil && found.Experiment.ID != "" {
		return found.Experiment.ID, nil
	}
	if s, ok := errors.AsType[*statusError](err); err != nil && (!ok || s.code != http.StatusNotFound) {
		return "", err
	}
	var created struct {
		ID string `json:"experiment_id"`
	}
	if err := c.post(ctx, "experiments/create", map[string]any{"name": c.set.Experiment}, &created); err != nil {
		return "", err
	}
	return created.ID, nil
}

// finish sends the end of the run.
func (c *Client) finish(ctx context.Context) {
	status := "FINISHED"
	if c.final.failed {
		status = "FAILED"
	}
	c.note(c.post(ctx, "runs/update", map[string]any{"run_id": c.runID, "status": status, "end_time": time.Now().UnixMilli()}, nil))
}

func (c *Client) post(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, http.MethodPost, path, body, into)
}

// statusError is a reply that is no success.
type statusError struct {
	path string
	code int
	text string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("mlflow: %s: status %d: %s", e.path, e.code, e.text)
}

// do makes a request of the API.
func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("mlflow: %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/2.0/mlflow/"+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("mlflow: %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	switch {
	case c.set.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.set.Token)
	case c.set.User != "":
		req.SetBasicAuth(c.set.User, c.set.Password)
	}
	reply, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("mlflow: %w", err)
	}
	defer reply.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err != nil {
		return fmt.Errorf("mlflow: %s: %w", path, err)
	}
	name, _, _ := strings.Cut(path, "?")
	if reply.StatusCode != http.StatusOK {
		var fault struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(answer, &fault) != nil || fault.Message == "" {
			fault.Message = string(answer[:min(len(answer), 200)])
		}
		return &statusError{name, reply.StatusCode, fault.Message}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("mlflow: %s: the reply is no JSON object: %w", name, err)
	}
	return nil
}
