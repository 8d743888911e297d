package serve

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
)

// origin is what the values of the layer of the service have as their source.
const origin = "service"

// PolicyText is a policy in a request, in the format of policy files. JSON is YAML, too.
type PolicyText struct {
	ContentType string `header:"Content-Type"`
	RawBody     []byte `contentType:"application/yaml" doc:"a policy in the format of policy files; see primus policy schema"`
}

// textTypes are the media types that a policy may have.
var textTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "application/json"}

// requestBody describes a PolicyText.
func requestBody() *huma.RequestBody {
	body := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}, Description: "a policy in the format of policy files, whose schema `primus policy schema` prints"}
	for _, kind := range textTypes {
		body.Content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject}}
	}
	return body
}

// text returns a copy of the policy, because the body is valid during the request only.
func (p *PolicyText) text() (string, error) {
	if !utf8.Valid(p.RawBody) {
		return "", huma.Error422UnprocessableEntity("given a body that is not UTF-8, want a policy in UTF-8")
	}
	if kind, _, err := mime.ParseMediaType(p.ContentType); err != nil || !slices.Contains(textTypes, kind) {
		return "", huma.Error415UnsupportedMediaType(fmt.Sprintf("given a body of type %q, want a policy as %s", p.ContentType, strings.Join(textTypes, ", ")))
	}
	return string(p.RawBody), nil
}

// State is the policy in force.
type State struct {
	Generation  uint64        `json:"generation" doc:"number of the dispatch table; give it as expected_generation of a change"`
	Since       uint64        `json:"since" doc:"generation that began with this policy"`
	Fingerprint string        `json:"fingerprint" doc:"equal for policies that mean the same"`
	Policy      oppolicy.View `json:"policy"`
	Layers      []Layer       `json:"layers" doc:"what each source gives, from the lowest to the highest; of a value that several give, the highest is in force"`
	Document    string        `json:"document" doc:"the text of the layer of the service; empty for none"`
	Warnings    []string      `json:"warnings" doc:"names in the policy that no loaded source registers"`
}

// Layer is a layer of the policy that gives something.
type Layer struct {
	Layer   string            `json:"layer" doc:"its kind" enum:"default,tuning,file,fleet,experiment,environment,flags,service"`
	Origin  string            `json:"origin" doc:"its source"`
	Sources map[string]string `json:"sources" doc:"the values that it gives, each with its source"`
}

// Proposal is what a change of the layer of the service would do.
type Proposal struct {
	Generation  uint64             `json:"generation" doc:"number of the dispatch table that the proposal was compared with"`
	Fingerprint string             `json:"fingerprint" doc:"of the policy that would be in force"`
	Policy      oppolicy.View      `json:"policy" doc:"the policy that would be in force"`
	Changes     []opmanager.Change `json:"changes" doc:"ops that would be served by another impl"`
	Warnings    []string           `json:"warnings" doc:"names in the proposed policy that no loaded source registers"`
	Refused     string             `json:"refused,omitempty" doc:"why the policy would be refused: it leaves an op that is in use without an impl"`
}

// policy returns the policy in force.
func (s *Server) policy() State {
	state := s.set.Manager.PolicyStack().State()
	p := State{
		Generation: state.Generation, Since: state.Since, Fingerprint: state.Policy.Fingerprint(), Policy: state.Policy.View(),
		Layers: []Layer{}, Document: state.Layers[opmanager.LayerService].Text, Warnings: append([]string{}, state.Warnings...),
	}
	for _, kind := range opmanager.LayerKinds() {
		layer := state.Layers[kind]
		l := Layer{Layer: kind.String(), Origin: layer.Origin, Sources: map[string]string{}}
		for _, field := range layer.Policy.Given() {
			l.Sources[string(field)] = layer.Policy.Source(field)
		}
		if len(l.Sources) > 0 {
			p.Layers = append(p.Layers, l)
		}
	}
	return p
}

// propose returns what the layer of a text would change. The error joins the faults of the text.
func (s *Server) propose(ctx context.Context, text string) (Proposal, error) {
	layer, err := read(ctx, text)
	if err != nil {
		return Proposal{}, err
	}
	return s.dryRun(layer), nil
}

func (s *Server) dryRun(layer opmanager.PolicyLayer) Proposal {
	d := s.set.Manager.PolicyStack().DryRun(opmanager.LayerService, layer)
	p := Proposal{
		Generation: d.Generation, Fingerprint: d.Policy.Fingerprint(), Policy: d.Policy.View(),
		Changes: d.Changes, Warnings: append([]string{}, d.Warnings...),
	}
	if d.Refused != nil {
		p.Refused = d.Refused.Error()
	}
	return p
}

// setLayer replaces the layer of the service by the one that read returns, if the policy has not
// changed since the expected generation, and returns what that has changed. The error is that of
// PolicyStack.SetUnchanged or of read.
func (s *Server) setLayer(expected uint64, read func() (opmanager.PolicyLayer, error)) (Proposal, error) {
	stack := s.set.Manager.PolicyStack()
	if err := stack.State().Unchanged(expected); err != nil {
		return Proposal{}, err
	}
	layer, err := read()
	if err != nil {
		return Proposal{}, err
	}
	p := s.dryRun(layer) // if the policy changes after this, expected is too old
	generation, err := stack.SetUnchanged(expected, opmanager.LayerService, layer)
	if err != nil {
		return Proposal{}, err
	}
	p.Generation, p.Refused = generation, ""
	return p, nil
}

// read returns the layer that a text gives. The error joins the faults of the text.
func read(ctx context.Context, text string) (opmanager.PolicyLayer, error) {
	l, err := policyfile.Parse(ctx, origin, []byte(text))
	if err != nil {
		return opmanager.PolicyLayer{}, err
	}
	return l.PolicyLayer, nil
}

// Expected is the condition of a change.
type Expected struct {
	Generation uint64 `query:"expected_generation" required:"true" doc:"the generation that the policy was read at"`
}

type policyChange struct {
	Expected
	PolicyText
}

type quarantineFilter struct {
	Op   string `query:"op" maxLength:"256" doc:"only for this op"`
	Impl string `query:"impl_id" doc:"only this impl"`
}

// Cleared says how many impls are used again.
type Cleared struct {
	Cleared int `json:"cleared"`
}

func (s *Server) registerPolicy() {
	get(s, "get-policy", "/v1/policy", "Read the policy in force, where each value came from, the layers that give values, and its generation", func(context.Context, *nothing) (State, error) { return s.policy(), nil })
	propose := huma.Operation{
		OperationID: "propose-policy", Method: http.MethodPost, Path: "/v1/policy/proposal", DefaultStatus: http.StatusOK,
		Summary: "Check a policy and say which ops it would move, where and why, without changing anything",
		Errors:  []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	}
	describe[Proposal](s, &propose)
	huma.Register(s.api, propose, func(ctx context.Context, in *PolicyText) (*answer, error) {
		text, err := in.text()
		if err != nil {
			return nil, err
		}
		propose := s.tryOut
		if _, known := actorOf(ctx); known {
			propose = s.propose
		}
		p, err := propose(ctx, text)
		return &answer{p}, problem(err)
	})
	change(s, huma.Operation{
		OperationID: "apply-policy", Method: http.MethodPut, Path: "/v1/policy",
		Summary: "Put a policy in force, on top of all other sources and in place of the one that the service had before",
		Errors:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, who actor, in *policyChange) (Proposal, error) {
		text, err := in.text()
		if err != nil {
			return Proposal{}, err
		}
		p, err := s.setLayer(in.Generation, func() (opmanager.PolicyLayer, error) { return read(ctx, text) })
		s.reportPolicy(who, "apply policy", p, err, in.Generation, "document", shorten(text))
		return p, err
	})
	change(s, huma.Operation{
		OperationID: "withdraw-policy", Method: http.MethodDelete, Path: "/v1/policy",
		Summary: "Remove the policy of the service, so that only the other sources count", Errors: []int{http.StatusConflict},
	}, func(_ context.Context, who actor, in *Expected) (Proposal, error) {
		p, err := s.setLayer(in.Generation, func() (opmanager.PolicyLayer, error) { return opmanager.PolicyLayer{}, nil })
		s.reportPolicy(who, "withdraw policy", p, err, in.Generation)
		return p, err
	})
	paths := s.api.OpenAPI().Paths // described after the registration, because huma also decodes a body described before it
	paths["/v1/policy"].Put.RequestBody, paths["/v1/policy/proposal"].Post.RequestBody = requestBody(), requestBody()
	get(s, "list-quarantine", "/v1/quarantine", "List the impls in quarantine", func(context.Context, *nothing) ([]opmanager.Quarantine, error) {
		return s.set.Manager.Quarantines(), nil
	})
	change(s, huma.Operation{
		OperationID: "clear-quarantine", Method: http.MethodDelete, Path: "/v1/quarantine",
		Summary: "End the quarantine of impls; without a filter of all of them", Errors: []int{http.StatusNotFound},
	}, func(_ context.Context, who actor, in *quarantineFilter) (Cleared, error) {
		if in.Op != "" {
			if _, err := s.set.Manager.Explain(in.Op); err != nil {
				return Cleared{}, err
			}
		}
		n := s.set.Manager.ClearQuarantine(in.Op, in.Impl)
		s.report(who, "clear quarantine", nil, "op", in.Op, "impl", in.Impl, "cleared", n)
		return Cleared{n}, nil
	})
}

// trialTime is how long a proposal without a token may take before it counts as several. In the
// long run such proposals together take a twentieth of a CPU from training, however expensive their
// documents are.
const trialTime = 50 * time.Millisecond

// everybody is the name of the single client of a limit that all clients share.
const everybody = ""

// tryOut proposes a policy without a token, one at a time.
func (s *Server) tryOut(ctx context.Context, text string) (Proposal, error) {
	s.trying.Lock()
	defer s.trying.Unlock()
	if wait, ok := s.trials.allow(everybody, time.Now()); !ok {
		err := huma.Error429TooManyRequests("too many policies are being tried out; try again later, or with a token")
		return Proposal{}, huma.ErrorWithHeaders(err, http.Header{"Retry-After": {inSeconds(wait)}})
	}
	began := time.Now()
	defer func() { s.trials.spend(everybody, max(0, float64(time.Since(began))/float64(trialTime)-1)) }()
	return s.propose(ctx, text)
}

// reportPolicy logs a change of the policy, or that it was refused, with the generation that it was
// meant for.
func (s *Server) reportPolicy(who actor, what string, p Proposal, err error, expected uint64, details ...any) {
	if err != nil {
		s.report(who, what, err, append([]any{"expected_generation", expected}, details...)...)
		return
	}
	s.report(who, what, nil, append([]any{"generation", p.Generation, "ops_changed", opmanager.ChangedOps(p.Changes)}, details...)...)
}

// report logs a change, or that it was refused: who asked for it, from where, and what it is.
func (s *Server) report(who actor, what string, err error, details ...any) {
	args := append([]any{"by", who.name, "from", who.from}, details...)
	if err != nil {
		s.set.Log.Warn(what+": refused", append(args, "reason", err)...)
		return
	}
	s.set.Log.Info(what, args...)
}

// maxLogged bounds the part of a policy that is logged.
const maxLogged = 2000

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxLogged {
		return string(runes[:maxLogged]) + "…"
	}
	return text
}
