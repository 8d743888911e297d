package fleet

import (
	"fmt"

	"github.com/primus-fl/primus/opmanager/policyfile"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// followed is the policy of the fleet as a run has followed it.
type followed struct {
	report PolicyReport
	text   string // of the revision that was seen last
}

func (a *Agent) policyEvents(events []*clientv3.Event) {
	for _, e := range events {
		if e.Type == clientv3.EventTypeDelete {
			a.policyGone()
		} else {
			a.takePolicy(e.Kv.ModRevision, e.Kv.Value)
		}
	}
}

// policyGone leaves the policy in force as it is when the fleet has none any more.
func (a *Agent) policyGone() {
	if a.policy.report.Seen != 0 {
		a.set.Log.Warn("the fleet has no policy any more, its last one stays in force; a policy {} takes it back", "revision", a.policy.report.InForce)
	}
	a.noteReport(PolicyReport{InForce: a.policy.report.InForce}, "")
}

// takePolicy puts a policy in force, unless it is the one that was seen last: after an outage, or
// on an etcd that was made anew, a revision alone does not tell.
func (a *Agent) takePolicy(revision int64, text []byte) {
	if a.policy.report.Seen == revision && a.policy.text == string(text) {
		return
	}
	generation, err := a.apply(revision, text)
	if err != nil {
		a.set.Log.Warn("policy of the fleet is not used, the policy before it stays in force", "revision", revision, "reason", err)
		a.noteReport(PolicyReport{Seen: revision, InForce: a.policy.report.InForce, Rejected: shorten(oneLine(err))}, string(text))
		return
	}
	a.set.Log.Info("policy of the fleet is in force", "revision", revision, "generation", generation)
	a.noteReport(PolicyReport{Seen: revision, InForce: revision}, string(text))
}

func (a *Agent) apply(revision int64, text []byte) (uint64, error) {
	overlay, err := policyfile.Parse(policyName(a.keys.policy, revision), text)
	if err != nil {
		return 0, err
	}
	return a.set.Apply(overlay)
}

// policyName is what stands for a file in the sources and faults of a policy.
func policyName(key string, revision int64) string { return fmt.Sprintf("etcd:%s@%d", key, revision) }

func (a *Agent) noteReport(r PolicyReport, text string) {
	a.policy = followed{report: r, text: text}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Policy = r
	if r.Rejected != "" {
		a.state.Rejections++
	}
}
