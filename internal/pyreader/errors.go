package pyreader

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// UnknownError is the error of a name that a checkout does not have.
type UnknownError struct {
	What, Given string
	Known       []string
}

// Error suggests the nearest name.
func (e *UnknownError) Error() string {
	if hint := suggest.Hint(e.Given, e.Known); hint != "" {
		return fmt.Sprintf("the checkout has no patch of %s %q%s", e.What, e.Given, hint)
	}
	const most = 12
	known := strings.Join(e.Known[:min(len(e.Known), most)], ", ")
	if len(e.Known) > most {
		known += ", …"
	}
	return fmt.Sprintf("the checkout has no patch of %s %q, want one of %s", e.What, e.Given, known)
}

// noWord returns the error of a search that finds nothing.
func noWord(words, vocabulary []string) error {
	for _, word := range words {
		if near, ok := suggest.Nearest(word, vocabulary); ok && near != word {
			return fmt.Errorf("no patch has the words %q; did you mean %q?", strings.Join(words, " "), near)
		}
	}
	return fmt.Errorf("no patch has the words %q in its id, targets, parameters or texts", strings.Join(words, " "))
}
