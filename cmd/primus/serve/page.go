package serve

import (
	"embed"
	"net/http"
)

//go:embed web
var web embed.FS

func (s *Server) registerPage(mux *http.ServeMux) {
	for path, file := range map[string]string{"/{$}": "web/index.html", "/app.js": "web/app.js", "/style.css": "web/style.css", "/icon.svg": "web/icon.svg"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, web, file) })
	}
}
