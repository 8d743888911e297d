package serve

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
)

//go:embed web
var web embed.FS

// pageView is what the page is made with; everything else it asks for.
type pageView struct {
	Version  string
	Writable bool // somebody may change the policy
}

func (s *Server) registerPage(mux *http.ServeMux) {
	page := template.Must(template.ParseFS(web, "web/index.html"))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		if err := page.Execute(&b, pageView{Version: s.set.Version, Writable: len(s.tokens) > 0}); err != nil {
			writeProblem(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes()) // who does not read it has gone
	})
	for _, file := range []string{"app.js", "style.css", "icon.svg"} {
		mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, web, "web/"+file) })
	}
}
