package opmanager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ImplStatus is an impl of an op in an Explanation.
type ImplStatus struct {
	ImplInfo
	Priority int `json:"priority"`
	// Available reports whether the impl can run on this machine.
	Available bool `json:"available"`
	// Supports describes the calls that the impl declares to serve, "" for all.
	Supports string `json:"supports,omitempty"`
	// Determinism is the declaration of the impl about the bits of its results.
	Determinism opregistry.Determinism `json:"determinism"`
	// FlushesSubnormals are the dtypes of the lead operand for which the impl declares that it takes
	// subnormal numbers as 0.
	FlushesSubnormals []tensor.DType `json:"flushes_subnormals,omitempty"`
	// Measured is the measured speed that the impl declares, nil if it declares none.
	Measured *opregistry.Measurement `json:"measured,omitempty"`
	// Reason is the reason why the impl does not serve calls, "" for the impl that does.
	Reason string `json:"reason,omitempty"`
}

// CallShape is the dtype and the shape of the lead operand of a call, such as the input of a norm
// or the operand A of a matrix product.
type CallShape struct {
	DType tensor.DType `json:"dtype"`
	Shape tensor.Shape `json:"shape"` // nil means any shape
}

// Explanation is the impl that serves an op and the reasons why the others do not.
type Explanation struct {
	Op         string       `json:"op"`
	Generation uint64       `json:"generation,omitempty"` // that of the dispatch table
	Selected   string       `json:"selected,omitempty"`   // the impl id, "" if calls fail
	Order      []ImplStatus `json:"order"`                // the candidates, best first
	Rejected   []ImplStatus `json:"rejected"`             // the impls that are not candidates
	Tokens     string       `json:"tokens"`               // the order in the policy
	Source     string       `json:"source"`               // where the order came from
	// Tuned says what the tuning chose: for all calls, then for some. It is empty if the policy
	// does not ask for tuned impls.
	Tuned []string `json:"tuned,omitempty"`
	// Rules are the rules for layers and phases that apply, "" for none.
	Rules string `json:"rules,omitempty"`
	// Call limits the explanation to some calls; nil means all.
	Call *CallShape `json:"call,omitempty"`
	// Devices are the choices for operands on devices other than the host, one for each type of
	// device that an impl of any op declares.
	Devices []DeviceChoice `json:"devices,omitempty"`
	// Canary is the impl on trial, nil for none.
	Canary *Canary `json:"canary,omitempty"`
	// Follows is the op of the same family that determines the order, "" if the op itself does.
	Follows string `json:"follows,omitempty"`
}

// DeviceChoice is what serves an op with operands on a type of device.
type DeviceChoice struct {
	Device   string               `json:"device"`             // the type, such as "opencl"
	Selected string               `json:"selected,omitempty"` // the impl id, "" if no impl serves operands there
	Order    []string             `json:"order"`              // the candidates, best first
	Rejected []oppolicy.Rejection `json:"rejected,omitempty"` // those of the impls for the device that are not candidates
}

// String returns the choice as one line.
func (d DeviceChoice) String() string {
	text := "on " + d.Device + ": no impl serves operands there"
	if len(d.Order) > 0 {
		text = "on " + d.Device + ": " + strings.Join(d.Order, ", then ")
	}
	for _, r := range d.Rejected {
		text += "; not " + r.ID + ": " + r.Reason
	}
	return text
}

// Explain explains an op. The error for an unknown op wraps opregistry.ErrNotFound and suggests the
// nearest name.
func (m *Manager) Explain(op string) (Explanation, error) { return m.explain(op, nil) }

// ExplainCall explains calls of an op whose lead operand has a dtype and a shape. An impl whose
// declared support does not include them is not a candidate.
func (m *Manager) ExplainCall(op string, call CallShape) (Explanation, error) {
	return m.explain(op, &call)
}

func (m *Manager) explain(op string, call *CallShape) (Explanation, error) {
	t := m.table.Load()
	i, ok := t.registry.Index(op)
	if !ok {
		return Explanation{}, unknownOp(t.registry, op)
	}
	e := t.explain(i, call)
	e.Canary = m.core.canary(t, i)
	return e, nil
}

// ExplainAll explains every op, in the order of the registry.
func (m *Manager) ExplainAll() []Explanation {
	t := m.table.Load()
	all := make([]Explanation, len(t.rows))
	for i := range t.rows {
		all[i] = t.explain(i, nil)
		all[i].Canary = m.core.canary(t, i)
	}
	return all
}

// Explain explains which of some impls would serve an op under a policy. Other than a Manager it
// does not take families of ops into account. resolve maps the aliases of vendors to their names.
func Explain(p oppolicy.Policy, op string, impls []oppolicy.Candidate, resolve func(string) string) Explanation {
	order, rejected := p.Select(op, impls, resolve)
	e := newExplanation(&p, op)
	for _, i := range order {
		c := impls[i]
		e.Order = append(e.Order, statusOf(c, whyLater(&p, op, impls[order[0]], c, resolve)))
	}
	for _, r := range rejected {
		i := slices.IndexFunc(impls, func(c oppolicy.Candidate) bool { return c.ID == r.ID })
		e.Rejected = append(e.Rejected, statusOf(impls[i], r.Reason))
	}
	e.selectFirst()
	return e
}

func (t *table) explain(i int, call *CallShape) Explanation {
	r := &t.rows[i]
	op := t.registry.Ops()[i].Name()
	e := newExplanation(t.policy, op)
	e.Generation, e.Rules, e.Call = t.generation, t.history.rules, call
	entries, leading := t.registry.Impls(i), t.registry.Impls(i)
	if r.follows >= 0 {
		e.Follows = t.registry.Ops()[r.follows].Name()
		leading = t.registry.Impls(r.follows)
	}
	var first *candidate
	for _, c := range r.order {
		entry := entryOf(entries, c.info.ID)
		if call != nil {
			if err := entry.Support.Lead(call.DType, call.Shape); err != nil {
				e.Rejected = append(e.Rejected, t.statusOf(entry, err.Error(), call))
				continue
			}
		}
		reason := ""
		if first == nil {
			first = c
		} else {
			reason = whyLater(t.policy, t.registry.Ops()[r.leader(i)].Name(), asCandidate(entryOf(leading, first.info.ID)),
				asCandidate(entryOf(leading, c.info.ID)), t.registry.Vendor)
			if e.Follows != "" {
				reason += " of " + e.Follows
			}
		}
		if c.canary != nil && reason != "" {
			reason = "a canary of " + c.canary.stats().Source
		}
		if c.trial != nil {
			if reason != "" {
				reason += " and "
			}
			reason += "on trial after a quarantine"
		}
		e.Order = append(e.Order, t.statusOf(entry, reason, call))
	}
	for _, rej := range r.rejected {
		e.Rejected = append(e.Rejected, t.statusOf(entryOf(entries, rej.ID), rej.Reason, call))
	}
	e.selectFirst()
	for _, d := range t.devices {
		e.Devices = append(e.Devices, d.choice(i, entries, call))
	}
	return e
}

// choice returns what serves an op on the devices.
func (d *deviceRows) choice(op int, entries []opregistry.Entry, call *CallShape) DeviceChoice {
	c := DeviceChoice{Device: d.on.String(), Order: []string{}}
	for _, cand := range d.rows[op].order {
		if call != nil {
			entry := entryOf(entries, cand.info.ID)
			if err := entry.Support.Lead(call.DType, call.Shape); err != nil {
				c.Rejected = append(c.Rejected, oppolicy.Rejection{ID: cand.info.ID, Reason: err.Error()})
				continue
			}
		}
		c.Order = append(c.Order, cand.info.ID)
	}
	for _, rej := range d.rows[op].rejected {
		if slices.Contains(entryOf(entries, rej.ID).Support.Devices, d.on) {
			c.Rejected = append(c.Rejected, rej)
		}
	}
	if len(c.Order) > 0 {
		c.Selected = c.Order[0]
	}
	return c
}

func newExplanation(p *oppolicy.Policy, op string) Explanation {
	tokens, source := p.Order(op)
	e := Explanation{Op: op, Order: []ImplStatus{}, Rejected: []ImplStatus{}, Tokens: oppolicy.FormatOrder(tokens), Source: source}
	if choice, ok := p.Tuned(op); ok {
		e.Tuned = append(e.Tuned, choice.Why)
		for _, call := range choice.Calls {
			e.Tuned = append(e.Tuned, call.Why)
		}
	}
	return e
}

// selectFirst sets Selected to the first impl of the order.
func (e *Explanation) selectFirst() {
	if len(e.Order) > 0 {
		e.Selected = e.Order[0].ID
	}
}

// whyLater returns the reason why a candidate comes after the first one, "" for the first one.
func whyLater(p *oppolicy.Policy, op string, first, c oppolicy.Candidate, resolve func(string) string) string {
	tokens, source := p.Order(op)
	token := func(c oppolicy.Candidate) int {
		return slices.IndexFunc(tokens, func(t oppolicy.Token) bool { return t.Matches(c, resolve) })
	}
	switch {
	case c.ID == first.ID:
		return ""
	case token(c) != token(first):
		return fmt.Sprintf("later in the order %s (%s)", oppolicy.FormatOrder(tokens), source)
	case c.Priority != first.Priority:
		return fmt.Sprintf("lower priority: %d, where %s has %d", c.Priority, first.ID, first.Priority)
	case c.Measured.Rate != first.Measured.Rate:
		return fmt.Sprintf("slower as measured beside default.flagos: %s, where %s has %s", rate(c.Measured), first.ID, rate(first.Measured))
	default:
		return fmt.Sprintf("lower priority: the same %d as %s, whose id sorts after this one", c.Priority, first.ID)
	}
}

// statusOf returns the status of an impl that does not serve calls for a reason.
func statusOf(c oppolicy.Candidate, reason string) ImplStatus {
	s := ImplStatus{
		ImplInfo: ImplInfo{ID: c.ID, Kind: c.Kind, Vendor: c.Vendor}, Priority: c.Priority, Available: c.Unusable == "",
		Determinism: c.Determinism, Reason: reason,
	}
	if c.Measured.Rate > 0 {
		s.Measured = &c.Measured
	}
	return s
}

// rate formats a measured speed.
func rate(m opregistry.Measurement) string {
	if m.Rate == 0 {
		return "no measurement"
	}
	return fmt.Sprintf("%.2g (%s)", m.Rate, m.By)
}

func (t *table) statusOf(e opregistry.Entry, reason string, call *CallShape) ImplStatus {
	c := asCandidate(e)
	c.Unusable = t.unavailable[e.Number]
	s := statusOf(c, reason)
	s.Source, s.Supports = e.Source, e.Support.String()
	if call == nil || slices.Contains(e.FlushesSubnormals, call.DType) {
		s.FlushesSubnormals = e.FlushesSubnormals
	}
	return s
}

func asCandidate(e opregistry.Entry) oppolicy.Candidate {
	return oppolicy.Candidate{ID: e.ID, Kind: e.Kind, Vendor: e.Vendor, Priority: e.Priority, Determinism: e.Determinism, Measured: e.Measured}
}

func entryOf(entries []opregistry.Entry, id string) opregistry.Entry {
	return entries[slices.IndexFunc(entries, func(e opregistry.Entry) bool { return e.ID == id })]
}
