package fleet

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Client reads the state of a fleet and changes its policy.
type Client struct {
	config Config
	keys   keys
	etcd   *clientv3.Client
}

// Open returns a Client of a fleet. It connects in the background, so an etcd that does not answer
// is the error of the first request.
func Open(config Config) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	etcd, err := config.open()
	if err != nil {
		return nil, err
	}
	return newClient(config, etcd), nil
}

func newClient(config Config, etcd *clientv3.Client) *Client {
	return &Client{config: config, keys: config.keys(), etcd: etcd}
}

// Close ends the connection.
func (c *Client) Close() error { return c.config.fault("close", c.etcd.Close()) }

// Snapshot is a fleet at one moment.
type Snapshot struct {
	Policy  Policy   `json:"policy"`
	Members []Member `json:"runs"` // by experiment, rank and id
	// Ended are the runs of the last day that have ended or are lost, the latest first.
	Ended []Member `json:"ended"`
	// Strange are records that cannot be read, each as a sentence.
	Strange []string `json:"strange,omitempty"`

	revision int64 // of etcd
}

// Policy is the policy of a fleet.
type Policy struct {
	Revision int64  `json:"revision"` // 0 when there is none
	Text     string `json:"text"`     // the content of a policy file
}

// ConflictError reports that the policy of a fleet was not replaced, because it is not the expected
// one.
type ConflictError struct{ Got, Want int64 }

// Error names both revisions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("fleet: the policy has revision %d, want %d: someone has changed it; nothing was replaced", e.Got, e.Want)
}

// Snapshot returns members and policy as they are now.
func (c *Client) Snapshot(ctx context.Context) (Snapshot, error) {
	var runs, status, policy *clientv3.GetResponse
	err := c.config.request(ctx, "list the runs", func(ctx context.Context) error {
		both, err := c.etcd.Txn(ctx).Then(clientv3.OpGet(c.keys.runs, clientv3.WithPrefix()), clientv3.OpGet(c.keys.policy), clientv3.OpGet(c.keys.status, clientv3.WithPrefix())).Commit()
		if err != nil {
			return err
		}
		runs, policy = (*clientv3.GetResponse)(both.Responses[0].GetResponseRange()), (*clientv3.GetResponse)(both.Responses[1].GetResponseRange())
		status = (*clientv3.GetResponse)(both.Responses[2].GetResponseRange())
		runs.Header = both.Header
		return nil
	})
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Members: []Member{}, revision: runs.Header.Revision}
	for _, kv := range policy.Kvs {
		s.Policy = Policy{Revision: kv.ModRevision, Text: string(kv.Value)}
	}
	read := func(from *clientv3.GetResponse) (all []Member) {
		for _, kv := range from.Kvs {
			m, err := parseMember(string(kv.Key), kv.Value)
			if err != nil {
				s.Strange = append(s.Strange, err.Error())
				continue
			}
			all = append(all, m)
		}
		return all
	}
	s.Members = append(s.Members, read(runs)...)
	sortMembers(s.Members)
	s.statuses(read(status))
	return s, nil
}

// watch watches keys from a revision on, until ctx ends. It returns an error when there is no
// answer in time; the client of etcd would wait without end.
func (c *Client) watch(ctx context.Context, key string, from int64, options ...clientv3.OpOption) (clientv3.WatchChan, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	late := time.AfterFunc(requestTimeout, cancel)
	events := c.etcd.Watch(ctx, key, append(options, clientv3.WithRev(from))...)
	if !late.Stop() {
		return nil, c.config.fault("watch "+key, fmt.Errorf("no answer within %s", requestTimeout))
	}
	return events, nil
}

// reach returns an error when etcd does not answer.
func (c *Client) reach(ctx context.Context) error {
	return c.config.request(ctx, "reach", func(ctx context.Context) error {
		_, err := c.etcd.Get(ctx, c.keys.policy, clientv3.WithCountOnly())
		return err
	})
}

// SetPolicy replaces the policy of the fleet and returns the new revision. Unless want is negative,
// it replaces the policy only if that has the revision want, or 0 for no policy; otherwise it
// returns a *ConflictError. The caller checks whether runs can use the text; their records show it
// afterwards.
func (c *Client) SetPolicy(ctx context.Context, text string, want int64) (int64, error) {
	return c.setPolicy(ctx, Change{Text: text}, want)
}

// setPolicy is SetPolicy with a record in the history.
func (c *Client) setPolicy(ctx context.Context, change Change, want int64) (int64, error) {
	change.When = time.Now().UTC()
	var done *clientv3.TxnResponse
	err := c.config.request(ctx, "set the policy", func(ctx context.Context) (err error) {
		txn := c.etcd.Txn(ctx)
		if want >= 0 {
			txn = txn.If(clientv3.Compare(clientv3.ModRevision(c.keys.policy), "=", want))
		}
		done, err = txn.Then(clientv3.OpPut(c.keys.policy, change.Text), clientv3.OpPut(c.changeKey(change), string(encode(change)))).Else(clientv3.OpGet(c.keys.policy)).Commit()
		return err
	})
	if err != nil {
		return 0, err
	}
	if !done.Succeeded {
		conflict := &ConflictError{Want: want}
		for _, kv := range done.Responses[0].GetResponseRange().Kvs {
			conflict.Got = kv.ModRevision
		}
		return 0, conflict
	}
	return done.Header.Revision, nil
}
