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
)

// Document is a policy in a request, in the format of policy files. JSON is YAML, too.
type Document struct {
	ContentType string `header:"Content-Type"`
	RawBody     []byte `contentType:"application/yaml" doc:"a policy in the format of policy files; see primus policy schema"`
}

// documentTypes are the media types that a policy may have.
var documentTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "application/json"}

// requestBody describes a Document.
func requestBody() *huma.RequestBody {
	body := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}, Description: "a policy in the format of policy files, whose schema `primus policy schema` prints"}
	for _, kind := range documentTypes {
		body.Content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject}}
	}
	return body
}

// text returns a copy of the document, because the body is valid during the request only.
func (d *Document) text() (string, error) {
	if !utf8.Valid(d.RawBody) {
		return "", huma.Error422UnprocessableEntity("given a body that is not UTF-8, want a policy in UTF-8")
	}
	if kind, _, err := mime.ParseMediaType(d.ContentType); err != nil || !slices.Contains(documentTypes, kind) {
		return "", huma.Error415UnsupportedMediaType(fmt.Sprintf("given a body of type %q, want a policy as %s", d.ContentType, strings.Join(documentTypes, ", ")))
	}
	return string(d.RawBody), nil
}

// Expected is the condition of a change.
type Expected struct {
	Generation uint64 `query:"expected_generation" required:"true" doc:"the generation that the policy was read at"`
}

type policyChange struct {
	Expected
	Document
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
	get(s, "get-policy", "/v1/policy", "Read the policy in force", func(context.Context, *nothing) (State, error) { return s.set.Control.State(), nil })
	propose := huma.Operation{
		OperationID: "propose-policy", Method: http.MethodPost, Path: "/v1/policy/proposal", DefaultStatus: http.StatusOK,
		Summary: "Check a policy and say what it would change, without changing anything",
		Errors:  []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	}
	describe[Proposal](s, &propose)
	huma.Register(s.api, propose, func(ctx context.Context, in *Document) (*answer, error) {
		text, err := in.text()
		if err != nil {
			return nil, err
		}
		propose := s.tryOut
		if _, known := actorOf(ctx); known {
			propose = s.set.Control.Propose
		}
		p, err := propose(text)
		return &answer{p}, problem(err)
	})
	change(s, huma.Operation{
		OperationID: "apply-policy", Method: http.MethodPut, Path: "/v1/policy",
		Summary: "Put a policy in force, on top of all other sources and in place of the one that the service had before",
		Errors:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity},
	}, func(who actor, in *policyChange) (Proposal, error) {
		text, err := in.text()
		if err != nil {
			return Proposal{}, err
		}
		p, err := s.set.Control.Apply(text, in.Generation)
		s.report(who, "apply policy", err, "generation", p.Generation, "ops_changed", opmanager.ChangedOps(p.Changes), "document", shorten(text))
		return p, err
	})
	change(s, huma.Operation{
		OperationID: "withdraw-policy", Method: http.MethodDelete, Path: "/v1/policy",
		Summary: "Remove the policy of the service, so that only the other sources count", Errors: []int{http.StatusConflict},
	}, func(who actor, in *Expected) (Proposal, error) {
		p, err := s.set.Control.Withdraw(in.Generation)
		s.report(who, "withdraw policy", err, "generation", p.Generation, "ops_changed", opmanager.ChangedOps(p.Changes))
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
	}, func(who actor, in *quarantineFilter) (Cleared, error) {
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

// tryOut proposes a document without a token, one at a time.
func (s *Server) tryOut(document string) (Proposal, error) {
	s.trying.Lock()
	defer s.trying.Unlock()
	if wait, ok := s.trials.allow(everybody, time.Now()); !ok {
		err := huma.Error429TooManyRequests("too many policies are being tried out; try again later, or with a token")
		return Proposal{}, huma.ErrorWithHeaders(err, http.Header{"Retry-After": {inSeconds(wait)}})
	}
	began := time.Now()
	defer func() { s.trials.spend(everybody, max(0, float64(time.Since(began))/float64(trialTime)-1)) }()
	return s.set.Control.Propose(document)
}

// report logs a change: who made it, from where, and what it was.
func (s *Server) report(who actor, what string, err error, details ...any) {
	args := append([]any{"by", who.name, "from", who.from}, details...)
	if err != nil {
		s.set.Log.Warn(what+": refused", "by", who.name, "from", who.from, "reason", err)
		return
	}
	s.set.Log.Info(what, args...)
}

// maxLogged bounds the part of a document that is logged.
const maxLogged = 2000

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxLogged {
		return string(runes[:maxLogged]) + "…"
	}
	return text
}
