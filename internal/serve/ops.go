package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Op is an op and what serves it.
type Op struct {
	Op       string `json:"op"`
	Selected string `json:"selected" doc:"the impl that serves calls outside of rules for layers and phases; empty when calls fail"`
	Order    int    `json:"candidates" doc:"impls that may serve calls"`
	Rejected int    `json:"rejected"`
	Tokens   string `json:"tokens" doc:"the order of the policy"`
	Source   string `json:"source" doc:"where that order came from"`
	Calls    uint64 `json:"calls"`
	Nanos    int64  `json:"nanos"`
}

// Impl is an impl of an op as `primus ops list` shows it, with its state and what it did.
type Impl struct {
	Op        string          `json:"op"`
	Impl      string          `json:"impl_id"`
	Kind      opregistry.Kind `json:"kind"`
	Vendor    string          `json:"vendor"`
	Priority  int             `json:"priority"`
	Available bool            `json:"available"`
	Rank      int             `json:"rank" doc:"1 is the impl that serves calls, 0 one that cannot be selected"`
	Reason    string          `json:"reason" doc:"why it cannot be selected"`
	State     string          `json:"state" enum:"selected,candidate,on_trial,rejected,quarantined,unavailable"`
	Calls     uint64          `json:"calls"`
	Nanos     int64           `json:"nanos"`
	Errors    uint64          `json:"errors"`
	Declines  uint64          `json:"declines"`
	Fallbacks uint64          `json:"fallbacks"`
}

type implFilter struct {
	Op     string `query:"op" maxLength:"256" doc:"only this op"`
	Kind   string `query:"kind" doc:"only impls of this kind" enum:"flagos,vendor,reference"`
	Vendor string `query:"vendor" doc:"only impls of this vendor"`
	State  string `query:"state" doc:"only impls in this state" enum:"selected,candidate,on_trial,rejected,quarantined,unavailable"`
}

// CallQuery says which calls an explanation is about.
type CallQuery struct {
	DType string `query:"dtype" doc:"calls with a first operand of this dtype, such as bf16"`
	Shape []int  `query:"shape" doc:"calls with a first operand of this shape, such as 2048,512" minimum:"0" maximum:"2147483647" maxItems:"16"`
	Layer int    `query:"layer" default:"-1" minimum:"-1" maximum:"999999" doc:"calls of this layer of the model, counted from 0"`
	Phase string `query:"phase" enum:"forward,backward" doc:"calls of this phase"`
}

type explainOne struct {
	Op string `path:"op" maxLength:"256"`
	CallQuery
}

func (s *Server) registerOps() {
	get(s, "list-ops", "/v1/ops", "List every op: what serves it, how many candidates, calls and time", func(context.Context, *nothing) ([]Op, error) { return s.ops(), nil })
	get(s, "list-impls", "/v1/impls", "List every impl of every op, best first, with state and counters", func(_ context.Context, in *implFilter) ([]Impl, error) { return s.impls(in) })
	get(s, "list-stats", "/v1/stats", "List what each impl did", func(context.Context, *nothing) ([]opmanager.ImplStats, error) { return s.set.Manager.Stats(), nil })
	get(s, "explain-ops", "/v1/explain", "Explain every op", func(_ context.Context, in *CallQuery) ([]opmanager.Explanation, error) {
		return in.explain(s.set.Manager)
	})
	get(s, "explain-op", "/v1/ops/{op}/explain", "Say which impl serves an op, and why no other does, as primus ops explain -o json", func(_ context.Context, in *explainOne) (opmanager.Explanation, error) {
		if e, err := s.set.Manager.Explain(in.Op); err != nil {
			return e, err
		}
		all, err := in.explain(s.set.Manager)
		i := slices.IndexFunc(all, func(e opmanager.Explanation) bool { return e.Op == in.Op })
		if err != nil || i < 0 {
			return opmanager.Explanation{}, err
		}
		return all[i], nil
	})
	get(s, "get-manifest", "/v1/manifest", "Return what has been decided, in the form of the manifest.json of a run", func(context.Context, *nothing) (opmanager.Manifest, error) {
		return s.set.Manager.Manifest(), nil
	})
}

// explain answers for every op.
func (q *CallQuery) explain(m *opmanager.Manager) ([]opmanager.Explanation, error) {
	var phase oppolicy.Phase
	if q.Phase != "" {
		var err error
		if phase, err = oppolicy.ParsePhase(q.Phase); err != nil {
			return nil, huma.Error422UnprocessableEntity(err.Error())
		}
	}
	if q.DType == "" && q.Shape == nil {
		return m.ExplainIn(q.Layer, phase, nil), nil
	}
	call := &opmanager.CallShape{DType: tensor.F32, Shape: q.Shape}
	if q.DType != "" {
		var err error
		if call.DType, err = tensor.ParseDType(q.DType); err != nil {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("dtype: given %q, want one of %v", q.DType, tensor.DTypes()))
		}
	}
	return m.ExplainIn(q.Layer, phase, call), nil
}

func (s *Server) ops() []Op {
	type total struct {
		calls uint64
		nanos int64
	}
	totals := map[string]total{}
	for _, st := range s.set.Manager.Stats() {
		t := totals[st.Op]
		totals[st.Op] = total{t.calls + st.Calls, t.nanos + int64(st.Duration)}
	}
	all := []Op{}
	for _, e := range s.set.Manager.ExplainAll() {
		t := totals[e.Op]
		all = append(all, Op{
			Op: e.Op, Selected: e.Selected, Order: len(e.Order), Rejected: len(e.Rejected), Tokens: e.Tokens, Source: e.Source,
			Calls: t.calls, Nanos: t.nanos,
		})
	}
	return all
}

func (s *Server) impls(only *implFilter) ([]Impl, error) {
	type key struct{ op, id string }
	stats, aside := map[key]opmanager.ImplStats{}, map[key]opmanager.QuarantineState{}
	for _, st := range s.set.Manager.Stats() {
		stats[key{st.Op, st.ID}] = st
	}
	for _, q := range s.set.Manager.Quarantines() {
		aside[key{q.Op, q.Impl}] = q.State
	}
	explained := s.set.Manager.ExplainAll()
	if only.Op != "" {
		e, err := s.set.Manager.Explain(only.Op)
		if err != nil {
			return nil, err
		}
		explained = []opmanager.Explanation{e}
	}
	all := []Impl{}
	for _, e := range explained {
		for i, st := range slices.Concat(e.Order, e.Rejected) {
			did, quarantine := stats[key{e.Op, st.ID}], aside[key{e.Op, st.ID}]
			row := Impl{
				Op: e.Op, Impl: st.ID, Kind: st.Kind, Vendor: st.Vendor, Priority: st.Priority, Available: st.Available,
				Calls: did.Calls, Nanos: int64(did.Duration), Errors: did.Errors, Declines: did.Declines, Fallbacks: did.Fallbacks,
			}
			if i < len(e.Order) {
				row.Rank = i + 1
			} else {
				row.Reason = st.Reason
			}
			row.State = stateOf(row, quarantine)
			if (only.Kind == "" || only.Kind == st.Kind.String()) && (only.Vendor == "" || only.Vendor == st.Vendor) && (only.State == "" || only.State == row.State) {
				all = append(all, row)
			}
		}
	}
	return all, nil
}

func stateOf(i Impl, quarantine opmanager.QuarantineState) string {
	switch {
	case quarantine == opmanager.QuarantineHalfOpen && i.Rank > 0:
		return "on_trial"
	case i.Rank == 1:
		return "selected"
	case i.Rank > 1:
		return "candidate"
	case quarantine == opmanager.QuarantineOpen:
		return "quarantined"
	case !i.Available && strings.HasPrefix(i.Reason, "unavailable"):
		return "unavailable"
	}
	return "rejected"
}
