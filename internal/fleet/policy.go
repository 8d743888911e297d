package fleet

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// followed is the last policy of the fleet that reached a run, and what the run did with it.
type followed struct {
	report PolicyReport
	text   string // of the last revision seen
}

func (a *Agent) policyEvents(ctx context.Context, events []*clientv3.Event) {
	for _, e := range events {
		if e.Type == clientv3.EventTypeDelete {
			a.policyGone()
		} else {
			a.takePolicy(ctx, e.Kv.ModRevision, e.Kv.Value)
		}
	}
}

// policyGone keeps the policy of the run when the fleet no longer has a policy.
func (a *Agent) policyGone() {
	if a.policy.report.Seen != 0 {
		a.set.Log.Warn("the fleet no longer has a policy; the run keeps the last one until it gets another, such as {}", "revision", a.policy.report.InForce)
	}
	a.noteReport(PolicyReport{InForce: a.policy.report.InForce}, "")
}

// takePolicy applies a policy unless it is the last one seen. Revisions alone do not decide that:
// an etcd that was set up anew counts from the beginning.
func (a *Agent) takePolicy(ctx context.Context, revision int64, text []byte) {
	if a.policy.report.Seen == revision && a.policy.text == string(text) {
		return
	}
	generation, err := a.apply(ctx, revision, text)
	if err != nil {
		a.set.Log.Warn("policy of the fleet is not used; the previous policy stays in force", "revision", revision, "reason", err)
		a.noteReport(PolicyReport{Seen: revision, InForce: a.policy.report.InForce, Rejected: shorten(oneLine(err))}, string(text))
		return
	}
	a.set.Log.Info("policy of the fleet is in force", "revision", revision, "generation", generation)
	a.noteReport(PolicyReport{Seen: revision, InForce: revision}, string(text))
}

func (a *Agent) apply(ctx context.Context, revision int64, text []byte) (uint64, error) {
	layer, err := policyfile.Parse(ctx, policyName(a.keys.policy, revision), text)
	if err != nil {
		return 0, err
	}
	generation, err := a.set.Manager.PolicyStack().Set(opmanager.LayerFleet, layer.PolicyLayer)
	if err != nil {
		return 0, err
	}
	for _, warning := range a.set.Manager.Warnings() {
		a.set.Log.Warn(warning)
	}
	return generation, nil
}

// checkPolicy returns why a run could not use a policy, nil if it could. Nothing changes.
func checkPolicy(ctx context.Context, m *opmanager.Manager, key, text string) error {
	layer, err := policyfile.Parse(ctx, policySource(key), []byte(text))
	if err != nil {
		return err
	}
	return m.PolicyStack().DryRun(opmanager.LayerFleet, layer.PolicyLayer).Refused
}

// checkInForce corrects the report if the run has gone back to an earlier policy, because that of
// the fleet did not serve a call.
func (a *Agent) checkInForce() {
	stack, r := a.set.Manager.PolicyStack(), a.policy.report
	origin := stack.State().Layers[opmanager.LayerFleet].Origin
	if r.InForce == 0 || origin == policyName(a.keys.policy, r.InForce) {
		return
	}
	back := stack.PutBack()
	if len(back) == 0 {
		return
	}
	r.InForce = 0
	if revision, ok := strings.CutPrefix(origin, policySource(a.keys.policy)+"@"); ok {
		r.InForce, _ = strconv.ParseInt(revision, 10, 64)
	}
	if r.Rejected == "" {
		r.Rejected = shorten(strings.ReplaceAll(back[len(back)-1].String(), "\n", "; "))
	}
	a.noteReport(r, a.policy.text)
}

// policyName is the name that sources and faults of a policy have in place of a file name, and
// policySource the part of it that all revisions have.
func policyName(key string, revision int64) string {
	return fmt.Sprintf("%s@%d", policySource(key), revision)
}

func policySource(key string) string { return "etcd:" + key }

func (a *Agent) noteReport(r PolicyReport, text string) {
	a.policy = followed{report: r, text: text}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Policy = r
	if r.Rejected != "" {
		a.state.Rejections++
	}
}
