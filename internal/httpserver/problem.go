package httpserver

import (
	"encoding/json"
	"net/http"
)

// problem is an answer as RFC 9457 describes it.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// WriteProblem answers with problem details.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(problem{Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil {
		panic("BUG: httpserver: problem details cannot be written as JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}
