package serve

import (
	"net/http"
	"strings"

	"github.com/primus-fl/primus/internal/serve/openai"
)

// registerModel adds the paths of the model, if there is one.
func (s *Server) registerModel(mux *http.ServeMux) {
	if s.set.Model == nil {
		return
	}
	for _, pattern := range s.set.Model.Patterns() {
		mux.Handle(pattern, http.HandlerFunc(s.askModel))
	}
}

// askModel passes a request on to the model. If there are tokens, texts are for their owners.
func (s *Server) askModel(w http.ResponseWriter, r *http.Request) {
	who, known := actorOf(r.Context())
	if s.asksModel(r) && len(s.tokens) > 0 && !known {
		openai.Refuse(w)
		return
	}
	if known {
		r = r.WithContext(openai.WithClient(r.Context(), "token "+who.name))
	}
	s.set.Model.ServeHTTP(w, r)
}

// asksModel reports whether a request is for a text.
func (s *Server) asksModel(r *http.Request) bool {
	return s.set.Model != nil && r.Method == http.MethodPost && (r.URL.Path == "/v1/completions" || strings.HasPrefix(r.URL.Path, "/v1/chat/"))
}
