package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxHistory is how many changes of the policy are kept.
const maxHistory = 100

// Change is a change of the policy of a fleet.
type Change struct {
	Revision int64     `json:"revision"` // of the policy that it made
	When     time.Time `json:"when"`     // by the clock of who changed it
	Who      string    `json:"who"`      // as that program says, such as USER@HOST; "" if it does not
	Why      string    `json:"why"`      // what changed it, such as apply
	Text     string    `json:"text"`     // the policy
}

// changeKey returns a key that comes after those of earlier changes.
func (c *Client) changeKey(change Change) string {
	return fmt.Sprintf("%s%020d", c.keys.history, change.When.UnixNano())
}

// History returns the changes of the policy, oldest first. A policy and its change are written
// together, and so have the same revision.
func (c *Client) History(ctx context.Context) ([]Change, error) {
	var found *clientv3.GetResponse
	err := c.config.request(ctx, "read the history", func(ctx context.Context) (err error) {
		found, err = c.etcd.Get(ctx, c.keys.history, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return nil, err
	}
	all := []Change{}
	for _, kv := range found.Kvs {
		var change Change
		if err := decodeChange(kv.Value, &change); err != nil {
			change = Change{Why: fmt.Sprintf("cannot be read: %v", err)}
		}
		change.Revision = kv.ModRevision
		all = append(all, change)
	}
	slices.SortFunc(all, func(a, b Change) int { return int(a.Revision - b.Revision) })
	return all, nil
}

// decodeChange is decode that leaves the text of the policy as it was.
func decodeChange(text []byte, change *Change) error {
	if err := decode(text, change); err != nil {
		return err
	}
	var exact struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(text, &exact)
	change.Text = exact.Text
	return err
}

// forgetOldChanges removes all changes but the last ones.
func (c *Client) forgetOldChanges(ctx context.Context) error {
	return c.config.request(ctx, "shorten the history", func(ctx context.Context) error {
		found, err := c.etcd.Get(ctx, c.keys.history, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil || len(found.Kvs) <= maxHistory {
			return err
		}
		first := found.Kvs[len(found.Kvs)-maxHistory].Key
		_, err = c.etcd.Delete(ctx, c.keys.history, clientv3.WithRange(string(first)))
		return err
	})
}

// before returns the policy that the fleet had before the revision now, {} if it had none. A
// revision of the past is that of an older one.
func before(history []Change, now, revision int64) (Change, error) {
	if revision != 0 {
		i := slices.IndexFunc(history, func(c Change) bool { return c.Revision == revision })
		if i < 0 {
			return Change{}, fmt.Errorf("fleet: given revision %d, want one of the history (primus fleet policy history)", revision)
		}
		return history[i], nil
	}
	i := slices.IndexFunc(history, func(c Change) bool { return c.Revision == now })
	switch {
	case i > 0:
		return history[i-1], nil
	case i == 0:
		return Change{Text: "{}\n"}, nil
	}
	return Change{}, fmt.Errorf("fleet: the policy of revision %d is not in the history: name the revision to go back to", now)
}
