package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Question asks every run which impl serves an op, and why no other does.
type Question struct {
	Op string `json:"op"`
	// Layer, counted from 0, and Phase say where in the model the calls are, so that rules for
	// layers and phases apply. With nil and the zero Phase no such rule applies.
	Layer *int           `json:"layer,omitempty"`
	Phase oppolicy.Phase `json:"phase,omitzero"`
	// Call narrows the question to calls of one dtype and shape; nil asks about every call.
	Call *opmanager.CallShape `json:"call,omitempty"`

	// Policy asks instead whether the run could use a policy with this text as that of the fleet;
	// nil asks about an op.
	Policy *string `json:"policy,omitempty"`
	// Status asks instead how the run gets on, Log for a part of the log of one run.
	Status bool         `json:"status,omitempty"`
	Log    *LogQuestion `json:"log,omitempty"`
}

// Answer is the answer of one run.
type Answer struct {
	Member Member `json:"run"`
	// Explanation is nil when there is no answer; Error then says why.
	Explanation *opmanager.Explanation `json:"explanation,omitempty"`
	Error       string                 `json:"error,omitempty"`
}

// reply is what a run writes: an explanation, that it could use a policy, how it gets on, a part of
// its log, or an error.
type reply struct {
	Explanation *opmanager.Explanation `json:"explanation,omitempty"`
	Usable      bool                   `json:"usable,omitempty"`
	Status      *Status                `json:"status,omitempty"`
	Log         *LogPart               `json:"log,omitempty"`
	Error       string                 `json:"error,omitempty"`
}

// Ask puts a question to all members and waits for their answers, at most for the duration
// patience. It returns an Answer for each member, in the order of Snapshot; that of a member which
// did not answer in time has an Error.
func (c *Client) Ask(ctx context.Context, q Question, patience time.Duration) ([]Answer, error) {
	s, heard, err := c.ask(ctx, q, patience, nil, nil)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(s.Members))
	for i, m := range s.Members {
		r := heard.of(m, patience)
		if r.Error == "" && r.Explanation == nil {
			r.Error = "the answer has no explanation"
		}
		answers[i] = Answer{Member: m, Explanation: r.Explanation, Error: r.Error}
	}
	return answers, nil
}

// replies are those of members, by id.
type replies map[string]reply

// of returns the reply of a member.
func (all replies) of(m Member, patience time.Duration) reply {
	if r, ok := all[m.ID]; ok {
		return r
	}
	return reply{Error: fmt.Sprintf("no answer within %s", patience)}
}

// ask puts a question to all members and returns them with the replies of those that among reports,
// nil for all. It calls notify for each reply, unless that is nil.
func (c *Client) ask(ctx context.Context, q Question, patience time.Duration, among func(Member) bool, notify func(Member, reply)) (Snapshot, replies, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lease *clientv3.LeaseGrantResponse
	err := c.config.request(ctx, "ask", func(ctx context.Context) (err error) {
		lease, err = c.etcd.Grant(ctx, int64((patience + 2*requestTimeout).Seconds()))
		return err
	})
	if err != nil {
		return Snapshot{}, nil, err
	}
	defer c.forget(ctx, lease.ID)
	fleet, err := c.Snapshot(ctx)
	if err != nil {
		return Snapshot{}, nil, err
	}
	id := fmt.Sprintf("%x", lease.ID)
	replies, err := c.watch(ctx, c.keys.answers+id+"/", fleet.revision+1, clientv3.WithPrefix(), clientv3.WithFilterDelete())
	if err != nil {
		return Snapshot{}, nil, err
	}
	err = c.config.request(ctx, "ask", func(ctx context.Context) error {
		_, err := c.etcd.Put(ctx, c.keys.questions+id, string(encode(q)), clientv3.WithLease(lease.ID))
		return err
	})
	if err != nil {
		return Snapshot{}, nil, err
	}
	heard, err := c.hear(ctx, replies, fleet.Members, among, patience, notify)
	return fleet, heard, err
}

// hear collects replies until all members have answered or patience is over.
func (c *Client) hear(ctx context.Context, answers clientv3.WatchChan, from []Member, among func(Member) bool, patience time.Duration, notify func(Member, reply)) (replies, error) {
	waiting := map[string]Member{}
	for _, m := range from {
		if among == nil || among(m) {
			waiting[m.ID] = m
		}
	}
	heard := replies{}
	over := time.NewTimer(patience)
	defer over.Stop()
	for len(waiting) > 0 {
		select {
		case <-over.C:
			return heard, nil
		case r, ok := <-answers:
			if err := broken(ctx, r, ok); err != nil {
				return nil, c.config.fault("wait for answers", err)
			}
			for _, e := range r.Events {
				key := string(e.Kv.Key)
				id := key[strings.LastIndexByte(key, '/')+1:]
				m, ok := waiting[id]
				if !ok {
					continue
				}
				delete(waiting, id)
				heard[id] = parseReply(e.Kv.Value)
				if notify != nil {
					notify(m, heard[id])
				}
			}
		}
	}
	return heard, nil
}

func parseReply(text []byte) reply {
	var r reply
	if err := decode(text, &r); err != nil {
		return reply{Error: fmt.Sprintf("the answer cannot be read: %v", err)}
	}
	if (r.Explanation != nil || r.Usable || r.Status != nil || r.Log != nil) == (r.Error != "") {
		return reply{Error: "the answer is neither what was asked for nor an error"}
	}
	return r
}

// forget revokes a lease and so removes everything that was written under it. When etcd does not
// answer, the lease expires.
func (c *Client) forget(ctx context.Context, lease clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = c.etcd.Revoke(ctx, lease)
}

// broken returns why a watch has ended, nil when it goes on.
func broken(ctx context.Context, r clientv3.WatchResponse, open bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !open:
		return errWatchEnded
	default:
		return r.Err()
	}
}

// maxName bounds the length of the name of an op in a question, maxLayers the layer.
const (
	maxName   = 256
	maxLayers = 1_000_000
)

// answer answers a question, unless it is for another run.
func (a *Agent) answer(ctx context.Context, text []byte) (r reply, mine bool) {
	q, err := readQuestion(text)
	switch {
	case err != nil:
		return reply{Error: shorten(err.Error())}, true
	case q.Status:
		s := a.status()
		return reply{Status: &s}, true
	case q.Log == nil:
		return answer(ctx, a.set.Manager, a.keys.policy, q), true
	case q.Log.Run != a.id:
		return reply{}, false
	case a.set.Tail == nil:
		return reply{Error: "this run keeps no log"}, true
	}
	lines, end := a.set.Tail(max(1, q.Log.Lines), q.Log.After)
	part := &LogPart{Lines: []string{}, Next: end}
	for line := range strings.Lines(strings.ToValidUTF8(string(lines), "\uFFFD")) {
		part.Lines = append(part.Lines, strings.TrimRight(line, "\r\n"))
	}
	return reply{Log: part}, true
}

// readQuestion reads a question. Unknown fields are an error, because they may change its meaning.
func readQuestion(text []byte) (q Question, err error) {
	read := json.NewDecoder(bytes.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode(&q); err != nil {
		return q, fmt.Errorf("the question cannot be read: %w", err)
	}
	return q, nil
}

// answer answers a question about the dispatch of a run.
func answer(ctx context.Context, m *opmanager.Manager, policyKey string, q Question) reply {
	if q.Policy != nil {
		if err := checkPolicy(ctx, m, policyKey, *q.Policy); err != nil {
			return reply{Error: shorten(oneLine(err))}
		}
		return reply{Usable: true}
	}
	if len(q.Op) > maxName { // finding a similar name would take long
		return reply{Error: fmt.Sprintf("the question is about an op whose name has %d bytes, want at most %d", len(q.Op), maxName)}
	}
	layer := -1
	if q.Layer != nil {
		if layer = *q.Layer; layer < 0 || layer >= maxLayers {
			return reply{Error: fmt.Sprintf("the question is about layer %d, want one from 0 to %d", layer, maxLayers-1)}
		}
	}
	if _, err := m.Explain(q.Op); err != nil {
		return reply{Error: shorten(err.Error())}
	}
	for _, e := range m.ExplainIn(layer, q.Phase, q.Call) {
		if e.Op == q.Op {
			return reply{Explanation: &e}
		}
	}
	return reply{Error: fmt.Sprintf("op %q is not registered any more", q.Op)}
}
