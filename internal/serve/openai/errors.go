package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/primus-fl/primus/internal/native/inference"
)

// The types of errors.
const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// apiError is an error in OpenAI's form.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Error returns the message.
func (e *apiError) Error() string { return e.Message }

// invalid returns the error of a parameter, or of the whole body.
func invalid(param, text string) *apiError {
	e := &apiError{status: http.StatusBadRequest, Message: text, Type: invalidRequest}
	if param != "" {
		e.Message, e.Param = param+": "+text, &param
	}
	return e
}

func coded(status int, kind, code, text string) *apiError {
	return &apiError{status: status, Message: text, Type: kind, Code: &code}
}

// busy returns the error of a client that has to come again later.
func busy(text string) *apiError {
	return coded(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", text)
}

// errorOf returns the answer to an error of the engine.
func errorOf(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*inference.RequestError](err); ok {
		return invalid(e.Param, e.Text)
	}
	switch {
	case errors.Is(err, inference.ErrBusy):
		return busy("too many requests wait for the model, of this client most; try again later")
	case errors.Is(err, inference.ErrClosed), errors.Is(err, context.Canceled):
		return coded(http.StatusServiceUnavailable, serverError, "unavailable", "the service ends")
	}
	return coded(http.StatusInternalServerError, serverError, "internal_error", err.Error())
}

// Refuse answers a request without a valid token.
func Refuse(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="primus"`)
	fail(w, coded(http.StatusUnauthorized, invalidRequest, "invalid_api_key", "want the header Authorization: Bearer TOKEN with a token of this service"))
}

func fail(w http.ResponseWriter, e *apiError) {
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	write(w, e.status, map[string]*apiError{"error": e})
}

// write answers with JSON.
func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encode(w, v)
}

// encode writes JSON. An error means that the client is gone.
func encode(w io.Writer, v any) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
}
