package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
)

// answer is the body of an operation. It has one type for all operations, because huma is compiled
// for each type; the operation describes what the body is.
type answer struct{ Body any }

// nothing is the input of operations that take none.
type nothing struct{}

// register adds the operations of the API, and the document that describes them, to mux.
func (s *Server) register(mux *http.ServeMux) {
	config := huma.DefaultConfig("Primus", s.set.Version)
	config.Info.Description = "What dispatch has decided and why, the policy that decides, and the progress of training."
	config.DocsPath, config.SchemasPath = "", "" // no pages from other servers, no links in answers
	config.CreateHooks = nil
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	s.api = humago.New(mux, config)
	s.api.UseMiddleware(s.refuseRepeated)
	s.registerOps()
	s.registerPolicy()
	s.registerInventory()
	s.registerRuns()
	s.registerProcess()
	s.registerStream()
}

// get adds an operation that reads.
func get[I, O any](s *Server, id, path, summary string, handler func(context.Context, *I) (O, error)) {
	op := huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Errors: []int{http.StatusTooManyRequests}}
	describe[O](s, &op)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*answer, error) {
		body, err := handler(ctx, in)
		return &answer{body}, problem(err)
	})
}

// describe says that an operation answers with an O.
func describe[O any](s *Server, op *huma.Operation) {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[O](), true, op.OperationID+"Response")
	status := cmp.Or(op.DefaultStatus, http.StatusOK)
	op.Responses = map[string]*huma.Response{strconv.Itoa(status): {
		Description: http.StatusText(status),
		Content:     map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}}
}

// change adds an operation that changes state.
func change[I, O any](s *Server, op huma.Operation, handler func(context.Context, actor, *I) (O, error)) {
	op.Security = []map[string][]string{{"token": {}}}
	op.Middlewares = huma.Middlewares{s.requireToken}
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	describe[O](s, &op)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*answer, error) {
		who, ok := actorOf(ctx)
		if !ok {
			panic("BUG: serve: a change without a token")
		}
		body, err := handler(ctx, who, in)
		return &answer{body}, problem(err)
	})
}

// refuseRepeated refuses requests that give a query parameter more than once, as all but one value
// would be ignored.
func (s *Server) refuseRepeated(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	for name, values := range u.Query() {
		if len(values) > 1 {
			s.fail(ctx, http.StatusUnprocessableEntity, fmt.Sprintf("query parameter %q is given %d times, want it once", name, len(values)))
			return
		}
	}
	next(ctx)
}

// fail answers an operation with problem details, and with headers, each a name and a value.
func (s *Server) fail(ctx huma.Context, status int, detail string, headers ...string) {
	for i := 0; i < len(headers); i += 2 {
		ctx.SetHeader(headers[i], headers[i+1])
	}
	if err := huma.WriteErr(s.api, ctx, status, detail); err != nil {
		s.set.Log.Debug("answer not written", "reason", err)
	}
}

func unwrap(ctx huma.Context) (*http.Request, http.ResponseWriter) { return humago.Unwrap(ctx) }

// problem returns the problem details for an error.
func problem(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[huma.StatusError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*opmanager.PolicyConflictError](err); ok {
		return huma.Error409Conflict(err.Error())
	}
	if refused, ok := errors.AsType[*opmanager.UnservedError](err); ok {
		return huma.Error422UnprocessableEntity(refused.Error(), details(refused)...)
	}
	if errors.Is(err, opregistry.ErrNotFound) {
		return huma.Error404NotFound(err.Error())
	}
	if faults := textFaults(err); faults != nil {
		return huma.Error422UnprocessableEntity("the policy cannot be used, and nothing has changed", faults...)
	}
	return huma.Error500InternalServerError(err.Error())
}

// details returns a line for each op that a refused policy would leave without an impl.
func details(refused *opmanager.UnservedError) []error {
	all := make([]error, len(refused.Ops))
	for i, op := range refused.Ops {
		all[i] = &huma.ErrorDetail{Message: op.String(), Location: "op." + op.Op}
	}
	return all
}

// textFaults returns the faults in the text of a policy, each with its place, nil for another
// error.
func textFaults(err error) []error {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var faults []error
	for _, each := range all {
		fault, ok := errors.AsType[*document.Error](each)
		if !ok {
			return nil
		}
		at := document.Origin{File: "body", Line: fault.Origin.Line, Column: fault.Origin.Column}
		problem := *fault
		problem.Origin = document.Origin{}
		faults = append(faults, &huma.ErrorDetail{Location: at.String(), Message: problem.Error()})
	}
	return faults
}
