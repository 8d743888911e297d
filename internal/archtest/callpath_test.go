package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step is a row of the table of docs/explanation/architecture.md that shows the path of a call.
type step struct {
	function, file string
	calls          []string
}

var (
	quoted     = regexp.MustCompile("`([A-Za-z]+\\.[A-Za-z]+)`")
	linkedFile = regexp.MustCompile(`\]\(\.\./\.\./([a-z_/]+\.go)\)`)
)

// callPath reads the table.
func callPath(t *testing.T) []step {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "explanation", "architecture.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## The path of a call\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var steps []step
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		s := step{function: quoted.FindStringSubmatch(cells[1])[1], file: linkedFile.FindStringSubmatch(cells[2])[1]}
		for _, m := range quoted.FindAllStringSubmatch(cells[4], -1) {
			s.calls = append(s.calls, m[1])
		}
		steps = append(steps, s)
	}
	return steps
}

// The functions of the documented path are where the table says, and call each other as it says.
func TestThePathOfACallIsDocumented(t *testing.T) {
	t.Parallel()
	steps := callPath(t)
	require.NotEmpty(t, steps)
	listed := map[string]bool{}
	for _, s := range steps {
		assert.False(t, listed[s.function], "%s is listed twice", s.function)
		listed[s.function] = true
	}
	called := map[string]bool{steps[0].function: true}
	for _, s := range steps {
		body := methodBody(t, s.file, s.function)
		if !assert.NotNil(t, body, "%s has no method %s", s.file, s.function) {
			continue
		}
		for _, next := range s.calls {
			called[next] = true
			assert.True(t, listed[next], "%s calls %s, which has no row", s.function, next)
			_, name, _ := strings.Cut(next, ".")
			assert.True(t, callsMethod(body, name), "%s in %s does not call %s", s.function, s.file, next)
		}
	}
	for _, s := range steps {
		assert.True(t, called[s.function], "no function of the table calls %s", s.function)
	}
}

// methodBody returns the body of a method "Type.name" in a file, nil if there is none.
func methodBody(t *testing.T, file, method string) *ast.BlockStmt {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", file), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		receiver := f.Recv.List[0].Type
		if p, ok := receiver.(*ast.StarExpr); ok {
			receiver = p.X
		}
		if g, ok := receiver.(*ast.IndexExpr); ok {
			receiver = g.X
		}
		if name, ok := receiver.(*ast.Ident); ok && name.Name+"."+f.Name.Name == method {
			return f.Body
		}
	}
	return nil
}

// callsMethod reports whether a body calls a method of a name.
func callsMethod(body *ast.BlockStmt, name string) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == name {
				found = true
			}
		}
		return true
	})
	return found
}
