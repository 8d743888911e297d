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
	const maxNames = 12
	known := strings.Join(e.Known[:min(len(e.Known), maxNames)], ", ")
	if len(e.Known) > maxNames {
		known += ", …"
	}
	return fmt.Sprintf("the checkout has no patch of %s %q, want one of %s", e.What, e.Given, known)
}

// noWord returns the error of a search that finds nothing.
func noWord(words, vocabulary []string) error {
	for _, word := range words {
		if nearest, ok := suggest.Nearest(word, vocabulary); ok && nearest != word {
			return fmt.Errorf("no patch has the words %q; did you mean %q?", strings.Join(words, " "), nearest)
		}
	}
	return fmt.Errorf("no patch has the words %q in its id, targets, parameters or texts", strings.Join(words, " "))
}
