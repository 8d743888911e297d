package syntax

import (
	"math/big"
	"slices"
)

// Kind says what a node is. The names are those of Python's module ast.
type Kind uint8

// The statements, with the fields of Node that they use besides those that say it themselves.
const (
	FunctionDef Kind = iota + 1 // Name, Params, Body, Decorators, Returns
	ClassDef                    // Name, List: bases, Keywords, Body, Decorators
	Return                      // Value
	Delete                      // Targets
	Assign                      // Targets, Value
	AugAssign                   // Target, Name: operator, Value
	AnnAssign                   // Target, Annotation, Value
	TypeAlias                   // Target, Value
	For                         // Target, Value: what is iterated, Body, Else
	While                       // Value: test, Body, Else
	If                          // Value: test, Body, Else
	With                        // List: of WithItem, Body
	Match                       // Value, List: of Case
	Raise                       // Value, Right: cause
	Try                         // Body, Handlers, Else, Finally
	Assert                      // Value, Right: message
	Import                      // List: of Alias
	ImportFrom                  // Name: module, Level, List: of Alias
	Global                      // Words
	Nonlocal                    // Words
	ExprStmt                    // Value
	Pass
	Break
	Continue
)

// The expressions.
const (
	BoolOp         Kind = iota + 32 // Name: and, or; List
	NamedExpr                       // Target, Value
	BinOp                           // Value, Name: operator, Right
	UnaryOp                         // Name: not, -, +, ~; Value
	Lambda                          // Params, Returns
	IfExp                           // Value: test, List: the value if it holds and the other one
	Dict                            // Keys, nil for **value; List: values
	Set                             // List
	ListComp                        // Value, List: of Generator
	SetComp                         // Value, List: of Generator
	GeneratorExp                    // Value, List: of Generator
	DictComp                        // Value: key, Right: value, List: of Generator
	Await                           // Value
	Yield                           // Value
	YieldFrom                       // Value
	Compare                         // Value, Words: operators, List
	Call                            // Value: function, List: arguments, Keywords
	FormattedValue                  // Value, Level: the letter of a conversion, Right: specification
	JoinedStr                       // List
	Constant                        // Const
	Attribute                       // Value, Name
	Subscript                       // Value, Right: index
	Starred                         // Value
	Name                            // Name
	List                            // List
	Tuple                           // List
	Slice                           // List: lower, upper and step, nil for none
)

// The parts of statements and expressions.
const (
	Param     Kind = iota + 64 // Name, Level: one of the roles, Annotation, Value: default
	Keyword                    // Name, empty for **value; Value
	Alias                      // Name, As
	WithItem                   // Value, Target
	Handler                    // Value: type, As, Body
	Generator                  // Target, Value: what is iterated, List: conditions
	Case                       // Value: the pattern as an expression, Right: guard, Body
)

// The roles of a Param.
const (
	PositionalOnly = iota + 1
	Positional
	VarArgs
	KeywordOnly
	VarKeywords
)

// Node is a part of a syntax tree. Its kind says which fields it uses; of these, a *Node is nil
// where the source has nothing for it.
type Node struct {
	Span
	Kind                 Kind
	Async                bool // of a FunctionDef, a For, a With or a Generator
	Name                 string
	Const                any // nil for None, or a bool, *big.Int, float64, complex128, string, Bytes or Ellipsis
	Target, Value, Right *Node
	List                 []*Node
	*Parts
}

// Parts are the fields of nodes that most nodes lack. A Node without them has no Parts.
type Parts struct {
	As                      string
	Level                   int
	Words                   []string
	Keys, Targets           []*Node
	Annotation              *Node
	Params, Keywords        []*Node
	Body                    []*Node
	Handlers, Else, Finally []*Node
	Decorators              []*Node
	Returns                 *Node // the annotation of a function, the expression of a lambda
}

// noParts are the Parts of calls and imports, which are many, where they are empty.
var noParts = &Parts{}

// Bytes is the value of a bytes literal.
type Bytes string

// Ellipsis is the value of the literal `...`.
type Ellipsis struct{}

// Is reports whether there is a node of a kind.
func (n *Node) Is(kind Kind) bool { return n != nil && n.Kind == kind }

// Ident returns the identifier if the node is a name, else nothing.
func (n *Node) Ident() string {
	if n.Is(Name) {
		return n.Name
	}
	return ""
}

// Str returns the text of a node that is a constant text.
func (n *Node) Str() (string, bool) {
	if !n.Is(Constant) {
		return "", false
	}
	s, ok := n.Const.(string)
	return s, ok
}

// Bound returns the name that an Alias binds.
func (n *Node) Bound() string {
	if n.As != "" {
		return n.As
	}
	return n.Name
}

// Argument returns the value of a keyword argument of a Call, nil if it is not given.
func (n *Node) Argument(name string) *Node {
	for _, k := range n.Keywords {
		if k.Name == name {
			return k.Value
		}
	}
	return nil
}

// Children calls visit for the nodes directly below a node, in the order of the source as far as
// the fields tell it. Generators, items of with and cases count as what is below them.
func (n *Node) Children(visit func(*Node)) {
	each := func(nodes ...*Node) {
		for _, c := range nodes {
			switch {
			case c == nil:
			case c.Kind == Generator || c.Kind == WithItem || c.Kind == Case:
				c.Children(visit)
			default:
				visit(c)
			}
		}
	}
	parts := n.Parts
	if parts == nil {
		parts = noParts
	}
	each(parts.Keys...)
	each(parts.Targets...)
	switch n.Kind {
	case WithItem:
		each(n.Value, n.Target)
	case Param:
		each(parts.Annotation)
	default:
		each(n.Target, parts.Annotation, n.Value, n.Right)
	}
	each(n.List...)
	each(parts.Params...)
	for _, p := range parts.Params {
		each(p.Value)
	}
	for _, list := range [][]*Node{parts.Keywords, parts.Body, parts.Handlers, parts.Else, parts.Finally, parts.Decorators} {
		each(list...)
	}
	each(parts.Returns)
}

// Walk calls visit for a node and then for every node below it. Where visit returns false, the
// nodes below are left out.
func Walk(n *Node, visit func(*Node) bool) {
	if n != nil && visit(n) {
		n.Children(func(c *Node) { Walk(c, visit) })
	}
}

// Version returns the version that a module states in literals at its top level: __version__, or
// MAJOR, MINOR and PATCH with PRE_RELEASE after them. It is empty if the module states none.
func (f *File) Version() string {
	stated := map[string]string{}
	for _, s := range f.Body {
		if s.Value == nil || s.Kind != Assign && s.Kind != AnnAssign {
			continue
		}
		for _, target := range append(slices.Clip(s.Targets), s.Target) {
			text, _ := s.Value.Str()
			if n, ok := s.Value.Const.(*big.Int); ok {
				text = n.String()
			}
			stated[target.Ident()] = text // empty for a value that is computed, which is not known
		}
	}
	if v := stated["__version__"]; v != "" {
		return v
	}
	if stated["MAJOR"] == "" || stated["MINOR"] == "" || stated["PATCH"] == "" {
		return ""
	}
	return stated["MAJOR"] + "." + stated["MINOR"] + "." + stated["PATCH"] + stated["PRE_RELEASE"]
}
