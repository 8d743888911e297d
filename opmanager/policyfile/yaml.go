package policyfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse parses the content of a policy file. The error joins one *Error for each
// fault; with an error there is no overlay.
func Parse(file string, data []byte) (*Overlay, error) {
	root, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	o, err := FromValue(root)
	if err != nil {
		return nil, err
	}
	o.file, o.content = file, sha256.Sum256(data)
	return o, nil
}

func parseYAML(file string, data []byte) (Value, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return Value{}, &Error{Place: Place{file, 1, 1}, Problem: "given an empty file, expected a mapping; write {} for a policy that changes nothing"}
	case err != nil:
		return Value{}, syntaxError(file, err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return Value{}, &Error{Place: Place{file, second.Line, second.Column}, Problem: "given a second document, expected one; remove the --- in front of it"}
	case !errors.Is(err, io.EOF):
		return Value{}, syntaxError(file, err)
	}
	c := &converter{file: file}
	root := c.value(document.Content[0], 0)
	if c.nodes > mostNodes {
		return Value{}, &Error{Place: root.Place, Problem: fmt.Sprintf("given more than %d values, aliases counted each time, expected a policy", mostNodes)}
	}
	return root, nil
}

// syntaxError gives an error of the parser, which knows a line at best, a place.
func syntaxError(file string, err error) error {
	place, problem := Place{file, 1, 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if line, convErr := strconv.Atoi(number); convErr == nil && line > 0 {
			place.Line, problem = line, text
			if countsFromZero(text) {
				place.Line++
			}
		}
	}
	return &Error{Place: place, Problem: fmt.Sprintf("expected YAML: %s", problem)}
}

// countsFromZero reports whether a message is one of the grammar's, in which the
// module counts lines from 0; in those about characters it counts from 1.
func countsFromZero(problem string) bool {
	what, ok := strings.CutPrefix(problem, "did not find expected ")
	return ok && (what == "key" || what == "node content" || strings.HasPrefix(what, "'") || strings.HasPrefix(what, "<"))
}

// Bounds of what is converted. A policy is less deep and less long; an anchor may
// contain itself, and a few aliases may stand for very much.
const (
	mostNesting = 6
	mostNodes   = 100_000
)

// converter turns the nodes of a file into values.
type converter struct {
	file  string
	nodes int
}

func (c *converter) place(n *yaml.Node) Place { return Place{c.file, n.Line, n.Column} }

func (c *converter) value(n *yaml.Node, depth int) Value {
	place := c.place(n)
	n = resolve(n)
	c.nodes++
	children := n.Content
	if depth >= mostNesting || c.nodes > mostNodes {
		children = nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		v := Value{Place: place, Type: TypeList}
		for _, child := range children {
			v.Items = append(v.Items, c.value(child, depth+1))
		}
		return v
	case yaml.MappingNode:
		v := Value{Place: place, Type: TypeMapping}
		for i := 0; i+1 < len(children); i += 2 {
			v.Entries = append(v.Entries, Entry{
				Key: resolve(children[i]).Value, Place: c.place(children[i]), Value: c.value(children[i+1], depth+1),
			})
		}
		return v
	}
	const marked = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return Value{Place: place, Type: scalarType(n), Text: n.Value, Exact: n.Style&marked == 0 && n.Anchor == "" && !strings.Contains(n.Value, " ")}
}

// resolve returns what an alias stands for, any other node itself.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// scalarType names the type of a scalar; one that no value may have keeps its tag.
func scalarType(n *yaml.Node) Type {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return TypeNull
	case "!!bool":
		return TypeBool
	case "!!int":
		return TypeInt
	case "!!float":
		return TypeFloat
	case "!!str":
		return TypeString
	default:
		return Type(strings.TrimLeft(tag, "!"))
	}
}
