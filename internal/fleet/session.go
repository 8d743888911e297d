package fleet

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// checkEvery is how often a run checks whether its record has to be written again.
const checkEvery = time.Second

// session registers the run, calls ready, and follows policy and questions until ctx ends or etcd
// is silent. It returns why it has ended.
func (a *Agent) session(ctx context.Context, ready func()) error {
	etcd, err := a.set.Config.open()
	if err != nil {
		return err
	}
	defer etcd.Close() // an error does not matter: the connection is given up
	s := &session{Agent: a, client: newClient(a.set.Config, etcd)}
	revision, err := s.register(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			s.leave(ctx)
		}
	}()
	ready()
	return s.follow(ctx, revision)
}

// session is the time from one connection to its end.
type session struct {
	*Agent
	client *Client
	lease  clientv3.LeaseID // of the record
	keep   clientv3.LeaseID // of the status
	told   Status           // the last one written

	revision int64 // of the record when it was written
}

// register applies the policy of the fleet and writes the record. It returns the revision of etcd
// at which it read the policy.
func (s *session) register(ctx context.Context) (revision int64, err error) {
	config := s.set.Config
	err = config.request(ctx, "register", func(ctx context.Context) error {
		lease, err := s.client.etcd.Grant(ctx, max(1, int64((s.set.Lease*7/10).Seconds())))
		if err != nil {
			return err
		}
		s.lease = lease.ID
		keep, err := s.client.etcd.Grant(ctx, max(1, int64(s.set.Keep.Seconds())))
		if err != nil {
			return err
		}
		s.keep = keep.ID
		policy, err := s.client.etcd.Get(ctx, s.keys.policy)
		if err != nil {
			return err
		}
		revision = policy.Header.Revision
		if len(policy.Kvs) == 0 {
			s.policyGone()
		}
		for _, kv := range policy.Kvs {
			s.takePolicy(ctx, kv.ModRevision, kv.Value)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.written = Member{}
	if err := s.publishStatus(ctx); err != nil {
		return 0, err
	}
	return revision, s.publish(ctx)
}

// follow handles policies, questions and changes of the record, and returns why it has ended.
func (s *session) follow(ctx context.Context, revision int64) error {
	over := func(err error) error { return s.set.Config.fault("follow", err) }
	alive, err := s.client.etcd.KeepAlive(ctx, s.lease)
	if err != nil {
		return over(err)
	}
	policy, err := s.client.watch(ctx, s.keys.policy, revision+1)
	if err != nil {
		return err
	}
	questions, err := s.client.watch(ctx, s.keys.questions, revision+1, clientv3.WithPrefix(), clientv3.WithFilterDelete())
	if err != nil {
		return err
	}
	record, err := s.client.watch(ctx, s.keys.runs+s.id, revision+1)
	if err != nil {
		return err
	}
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, ok := <-alive:
			if !ok { // also closed when etcd was silent for the duration of the lease
				return over(errors.New("the lease has ended: etcd was silent for too long, or has revoked it"))
			}
		case r, ok := <-policy:
			if err := broken(ctx, r, ok); err != nil {
				return over(err)
			}
			s.policyEvents(ctx, r.Events)
		case r, ok := <-questions:
			if err := broken(ctx, r, ok); err != nil {
				return over(err)
			}
			if err := s.answer(ctx, r.Events); err != nil {
				return err
			}
		case r, ok := <-record:
			if err := broken(ctx, r, ok); err != nil {
				return over(err)
			}
			s.recordEvents(r.Events)
		case <-check.C:
		}
		if err := s.publish(ctx); err != nil {
			return err
		}
		if err := s.publishStatus(ctx); err != nil {
			return err
		}
	}
}

// publish writes the record if it differs from the one in etcd.
func (s *session) publish(ctx context.Context) error {
	generation := s.set.Manager.Generation()
	if s.written.Generation != generation {
		s.checkInForce()
	}
	if s.written.ID != "" && s.written.Generation == generation && s.written.Policy == s.policy.report {
		return nil
	}
	manifest := s.set.Manager.Manifest()
	m := Member{
		ID: s.id, Identity: s.set.Identity, Generation: generation,
		Fingerprint: manifest.Policy, Manifest: manifestHash(manifest), Policy: s.policy.report,
	}
	err := s.set.Config.request(ctx, "write the record", func(ctx context.Context) error {
		put, err := s.client.etcd.Put(ctx, s.keys.runs+s.id, string(encode(m)), clientv3.WithLease(s.lease))
		if err == nil {
			s.revision = put.Header.Revision
		}
		return err
	})
	if err == nil {
		s.written = m
	}
	return err
}

// recordEvents checks whether somebody else has changed or removed the record since it was written,
// in which case it is written again.
func (s *session) recordEvents(events []*clientv3.Event) {
	for _, e := range events {
		if e.Kv.ModRevision <= s.revision || s.written.ID == "" {
			continue
		}
		s.set.Log.Warn("somebody else has changed or removed the record of this run in the fleet; it is written again", "id", s.id)
		s.written = Member{}
	}
}

// answer answers questions. An answer is written under the lease of its question; questions without
// a lease are ignored, because their answers would stay for ever.
func (s *session) answer(ctx context.Context, events []*clientv3.Event) error {
	for _, e := range events {
		if e.Kv.Lease == 0 {
			continue
		}
		id := string(e.Kv.Key[len(s.keys.questions):])
		r, mine := s.Agent.answer(ctx, e.Kv.Value)
		if !mine {
			continue
		}
		text := encode(r)
		err := s.set.Config.request(ctx, "answer", func(ctx context.Context) error {
			_, err := s.client.etcd.Put(ctx, s.keys.answers+id+"/"+s.id, string(text), clientv3.WithLease(clientv3.LeaseID(e.Kv.Lease)))
			return err
		})
		_, refused := errors.AsType[rpctypes.EtcdError](err)
		switch {
		case err == nil, errors.Is(err, rpctypes.ErrLeaseNotFound): // in the latter case the client has gone
		case refused:
			s.set.Log.Warn("a question about the dispatch of this run is not answered", "reason", err)
		default:
			return err
		}
	}
	return nil
}
