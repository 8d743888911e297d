package serve

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

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

// text returns the document. The body belongs to the request only.
func (d *Document) text() (string, error) {
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
	Op   string `query:"op" doc:"only for this op"`
	Impl string `query:"impl_id" doc:"only this impl"`
}

// Cleared says how many impls are used again.
type Cleared struct {
	Cleared int `json:"cleared"`
}

func (s *Server) registerPolicy() {
	get(s, "get-policy", "/v1/policy", "Read the policy in force", func(context.Context, *nothing) (State, error) { return s.set.Control.State(), nil })
	huma.Register(s.api, huma.Operation{
		OperationID: "propose-policy", Method: http.MethodPost, Path: "/v1/policy/proposal", DefaultStatus: http.StatusOK, MaxBodyBytes: mostBody,
		Summary: "Check a policy and say what it would change, and change nothing",
		Errors:  []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
	}, func(_ context.Context, in *Document) (*answer[Proposal], error) {
		text, err := in.text()
		if err != nil {
			return nil, err
		}
		p, err := s.set.Control.Propose(text)
		return &answer[Proposal]{p}, problem(err)
	})
	change(s, huma.Operation{
		OperationID: "apply-policy", Method: http.MethodPut, Path: "/v1/policy", MaxBodyBytes: mostBody,
		Summary: "Put a policy in force, on top of all other sources and in place of the one that the service had before",
		Errors:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity},
	}, func(who actor, in *policyChange) (Proposal, error) {
		text, err := in.text()
		if err != nil {
			return Proposal{}, err
		}
		p, err := s.set.Control.Apply(text, in.Generation)
		s.report(who, "apply policy", err, "generation", p.Generation, "ops_changed", len(p.Changes), "document", shorten(text))
		return p, err
	})
	change(s, huma.Operation{
		OperationID: "withdraw-policy", Method: http.MethodDelete, Path: "/v1/policy",
		Summary: "Take the policy of the service away, so that the other sources decide alone", Errors: []int{http.StatusConflict},
	}, func(who actor, in *Expected) (Proposal, error) {
		p, err := s.set.Control.Withdraw(in.Generation)
		s.report(who, "withdraw policy", err, "generation", p.Generation, "ops_changed", len(p.Changes))
		return p, err
	})
	paths := s.api.OpenAPI().Paths // described now, because bodies that are described before are decoded, too
	paths["/v1/policy"].Put.RequestBody, paths["/v1/policy/proposal"].Post.RequestBody = requestBody(), requestBody()
	get(s, "list-quarantine", "/v1/quarantine", "List the impls that are set aside", func(context.Context, *nothing) ([]opmanager.Quarantine, error) {
		return s.set.Manager.Quarantines(), nil
	})
	change(s, huma.Operation{
		OperationID: "clear-quarantine", Method: http.MethodDelete, Path: "/v1/quarantine",
		Summary: "Let impls that are set aside be used again at once; without a filter all of them",
	}, func(who actor, in *quarantineFilter) (Cleared, error) {
		n := s.set.Manager.ClearQuarantine(in.Op, in.Impl)
		s.report(who, "clear quarantine", nil, "op", in.Op, "impl", in.Impl, "cleared", n)
		return Cleared{n}, nil
	})
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

// mostLogged bounds the part of a document that is logged.
const mostLogged = 2000

func shorten(text string) string {
	if runes := []rune(text); len(runes) > mostLogged {
		return string(runes[:mostLogged]) + "…"
	}
	return text
}
