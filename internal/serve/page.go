package serve

import (
	"bytes"
	"embed"
	"github.com/primus-fl/primus/internal/httpserver"
	"html/template"
	"net/http"
	"slices"
)

//go:embed web
var web embed.FS

// pageView is what the page is rendered with; the page requests everything else.
type pageView struct {
	Version  string
	Writable bool // there are tokens, so the policy and the run can be changed
	Archive  bool // it shows runs of other processes
	Planned  bool // it says which patches an experiment gets
	Model    string
	Scripts  []string
}

func (s *Server) registerPage(mux *http.ServeMux) {
	view := pageView{Version: s.set.Version, Writable: len(s.tokens) > 0, Archive: s.set.Archive, Planned: s.set.PatchesPlan != nil}
	if s.set.Model != nil {
		view.Model = s.set.Model.Name()
	}
	view.Scripts = []string{"app.js", "chart.js", "run.js", "patches.js"}
	if !view.Archive {
		view.Scripts = append(view.Scripts, "ops.js", "policy.js", "events.js")
	}
	mux.HandleFunc("GET /{$}", servePage("index.html", view))
	files := slices.Concat(view.Scripts, []string{"style.css", "icon.svg"})
	if view.Model != "" {
		mux.HandleFunc("GET /model", servePage("model.html", view))
		files = append(files, "model.js")
	}
	for _, file := range files {
		mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, web, "web/"+file) })
	}
}

// servePage returns the handler of a page.
func servePage(file string, view pageView) http.HandlerFunc {
	page := template.Must(template.ParseFS(web, "web/"+file))
	return func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		if err := page.Execute(&b, view); err != nil {
			httpserver.WriteProblem(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes()) // an error means that the client is gone
	}
}
