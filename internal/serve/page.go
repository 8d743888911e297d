package serve

import (
	"embed"
	"html"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
)

//go:embed web
var web embed.FS

// registerPage adds the page, and the page of the model if there is one.
func (s *Server) registerPage(mux *http.ServeMux) {
	view := map[string]string{
		"version":   s.set.Version,
		"writable":  strconv.FormatBool(len(s.tokens) > 0), // the policy and the run can be changed
		"archive":   strconv.FormatBool(s.set.Archive),     // it shows runs of other processes
		"live":      strconv.FormatBool(!s.set.Archive),
		"planned":   strconv.FormatBool(s.set.PatchesPlan != nil), // it says which patches an experiment gets
		"unplanned": strconv.FormatBool(s.set.PatchesPlan == nil),
		"served":    "false", // there is a model to talk to
	}
	files := []string{"app.js", "chart.js", "run.js", "patches.js", "style.css", "icon.svg"}
	if !s.set.Archive {
		files = append(files, "ops.js", "policy.js", "events.js")
	}
	if s.set.Model != nil && s.set.Model.Name() != "" {
		view["model"], view["served"] = s.set.Model.Name(), "true"
		mux.HandleFunc("GET /model", servePage("model.html", view))
		files = append(files, "model.js")
	}
	mux.HandleFunc("GET /{$}", servePage("index.html", view))
	for _, file := range files {
		mux.HandleFunc("GET /"+file, serveContent(mime.TypeByExtension(path.Ext(file)), readWeb(file)))
	}
}

// servePage returns the handler of a page, which requests everything else that it shows.
func servePage(file string, view map[string]string) http.HandlerFunc {
	return serveContent("text/html; charset=utf-8", []byte(fill(string(readWeb(file)), view)))
}

// serveContent returns a handler that gives the whole of a content, whatever range or condition a
// request has: net/http refuses those that it cannot read without problem details.
func serveContent(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // an error means that the client is gone
	}
}

func readWeb(file string) []byte {
	content, err := web.ReadFile("web/" + file)
	if err != nil {
		panic("BUG: serve: " + err.Error())
	}
	return content
}

var (
	pagePart  = regexp.MustCompile(`(?s)\{\{if (\w+)\}\}(.*?)\{\{end\}\}`)
	pageValue = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// fill returns a page with {{name}} replaced by a value, and without the parts from {{if name}} to
// {{end}} whose value is false. Parts do not nest. The packages for templates of the standard
// library call methods by name, so the linker would keep every exported method of the program.
func fill(text string, view map[string]string) string {
	value := func(name string) string {
		v, ok := view[name]
		if !ok {
			panic("BUG: serve: no value for " + name + " in a page")
		}
		return v
	}
	text = pagePart.ReplaceAllStringFunc(text, func(part string) string {
		m := pagePart.FindStringSubmatch(part)
		if value(m[1]) == "false" {
			return ""
		}
		return m[2]
	})
	return pageValue.ReplaceAllStringFunc(text, func(name string) string {
		return html.EscapeString(value(pageValue.FindStringSubmatch(name)[1]))
	})
}
