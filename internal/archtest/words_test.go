package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An error about what somebody gave says "given X, want Y". Results of computations are compared as
// tests do it, with "got".
var otherForms = regexp.MustCompile(`\bgot\b|\bwant\b.*\bgiven\b|[,;:] expected\b|^expected |[^-]\bexpected\b.*\b(but|given|found|received)\b|\bgiven\b.*[^-]\bexpected\b`)

// comparisons are the files that compare results.
var comparisons = []string{"opstest", "ops/opscases", "tensor/compare.go", "internal/benchmarks/serve_crowd.go"}

// checkErrorForms returns the texts that say what was given in another way. The text of a BUG is
// for the authors of the code.
func checkErrorForms(s source) []string {
	if s.isTest() || s.isKit() || insideAny(s.where(), comparisons) {
		return nil
	}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && otherForms.MatchString(text) && !bugText.MatchString(text) {
			found = append(found, fmt.Sprintf("%s:%d: %q: write \"given X, want Y\"", s.where(), s.fset.Position(literal.Pos()).Line, text))
		}
		return true
	})
	return found
}

var bugText = regexp.MustCompile(`\bBUG: `)

func TestErrorForms(t *testing.T) {
	t.Parallel()
	for _, s := range tree(t) {
		for _, violation := range checkErrorForms(s) {
			t.Error(violation)
		}
	}
}

func TestErrorFormsFindViolations(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"lr: given %v, want a number above 0":         true,
		"%d devices are expected":                     true,
		"--port: given %d, --expected-gpus: given %d": true,
		"BUG: got the state of %s, want that of %s":   true,
		"lr: got %v, want a number above 0":           false,
		"want a number above 0, got %v":               false,
		"want a number above 0, given %v":             false,
		"lr: given %v, expected a number above 0":     false,
		"unknown key %q, expected one of %s":          false,
		"expected a list but found %s":                false,
		"dtype: expected %s":                          false,
		"--show: got %d, and %s has %s":               false,
	} {
		for where, checked := range map[string]bool{"opregistry/a.go": true, "opregistry/a_test.go": false, "opstest/a.go": false} {
			s := parse(t, where, "package "+path.Base(path.Dir(where))+"\nconst text = "+strconv.Quote(text))
			assert.Equal(t, ok || !checked, len(checkErrorForms(s)) == 0, "%s in %s", text, where)
		}
	}
}
