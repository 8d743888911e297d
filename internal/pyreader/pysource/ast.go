package pysource

// Node is a part of a syntax tree.
type Node interface{ Range() Span }

// Stmt is a statement.
type Stmt interface {
	Node
	stmt()
}

// Expr is an expression.
type Expr interface {
	Node
	expr()
}

type stmtNode struct{ Span }

func (stmtNode) stmt() {}

type exprNode struct{ Span }

func (exprNode) expr() {}

// The statements. Fields are as in Python's ast; Async marks what has a node of its own there.
type (
	FunctionDef struct {
		stmtNode
		Async      bool
		Name       string
		Args       *Arguments
		Body       []Stmt
		Decorators []Expr
		Returns    Expr // nil for none
		TypeParams []Expr
	}
	ClassDef struct {
		stmtNode
		Name       string
		Bases      []Expr
		Keywords   []*Keyword
		Body       []Stmt
		Decorators []Expr
		TypeParams []Expr
	}
	Return struct {
		stmtNode
		Value Expr // nil for none
	}
	Delete struct {
		stmtNode
		Targets []Expr
	}
	Assign struct {
		stmtNode
		Targets []Expr
		Value   Expr
	}
	AugAssign struct {
		stmtNode
		Target Expr
		Op     string
		Value  Expr
	}
	AnnAssign struct {
		stmtNode
		Target     Expr
		Annotation Expr
		Value      Expr // nil for none
	}
	TypeAlias struct {
		stmtNode
		Name       Expr
		TypeParams []Expr
		Value      Expr
	}
	For struct {
		stmtNode
		Async        bool
		Target, Iter Expr
		Body, Orelse []Stmt
	}
	While struct {
		stmtNode
		Test         Expr
		Body, Orelse []Stmt
	}
	If struct {
		stmtNode
		Test         Expr
		Body, Orelse []Stmt
	}
	With struct {
		stmtNode
		Async bool
		Items []*WithItem
		Body  []Stmt
	}
	Match struct {
		stmtNode
		Subject Expr
		Cases   []*MatchCase
	}
	Raise struct {
		stmtNode
		Exc, Cause Expr // nil for none
	}
	Try struct {
		stmtNode
		Star      bool
		Body      []Stmt
		Handlers  []*ExceptHandler
		Orelse    []Stmt
		Finalbody []Stmt
	}
	Assert struct {
		stmtNode
		Test, Msg Expr // Msg is nil for none
	}
	Import struct {
		stmtNode
		Names []*Alias
	}
	ImportFrom struct {
		stmtNode
		Module string
		Names  []*Alias
		Level  int
	}
	Global struct {
		stmtNode
		Names []string
	}
	Nonlocal struct {
		stmtNode
		Names []string
	}
	ExprStmt struct {
		stmtNode
		Value Expr
	}
	Pass     struct{ stmtNode }
	Break    struct{ stmtNode }
	Continue struct{ stmtNode }
)

// The expressions.
type (
	BoolOp struct {
		exprNode
		Op     string // and, or
		Values []Expr
	}
	NamedExpr struct {
		exprNode
		Target, Value Expr
	}
	BinOp struct {
		exprNode
		Left  Expr
		Op    string
		Right Expr
	}
	UnaryOp struct {
		exprNode
		Op      string // not, -, +, ~
		Operand Expr
	}
	Lambda struct {
		exprNode
		Args *Arguments
		Body Expr
	}
	IfExp struct {
		exprNode
		Test, Body, Orelse Expr
	}
	Dict struct {
		exprNode
		Keys   []Expr // nil for **value
		Values []Expr
	}
	Set struct {
		exprNode
		Elts []Expr
	}
	// Comprehension is a ListComp, SetComp, GeneratorExp or DictComp, as Kind says; only the last one
	// has a Value.
	Comprehension struct {
		exprNode
		Kind       string
		Elt, Value Expr
		Generators []*Generator
	}
	Await struct {
		exprNode
		Value Expr
	}
	Yield struct {
		exprNode
		Value Expr // nil for none
	}
	YieldFrom struct {
		exprNode
		Value Expr
	}
	Compare struct {
		exprNode
		Left        Expr
		Ops         []string
		Comparators []Expr
	}
	Call struct {
		exprNode
		Func     Expr
		Args     []Expr
		Keywords []*Keyword
	}
	FormattedValue struct {
		exprNode
		Value      Expr
		Conversion int // -1 for none, else the letter
		FormatSpec Expr
	}
	JoinedStr struct {
		exprNode
		Values []Expr
	}
	// Constant is a literal. Value is nil for None, or a bool, *big.Int, float64, complex128, string,
	// Bytes or Ellipsis.
	Constant struct {
		exprNode
		Value any
	}
	Attribute struct {
		exprNode
		Value Expr
		Attr  string
	}
	Subscript struct {
		exprNode
		Value, Slice Expr
	}
	Starred struct {
		exprNode
		Value Expr
	}
	Name struct {
		exprNode
		ID string
	}
	List struct {
		exprNode
		Elts []Expr
	}
	Tuple struct {
		exprNode
		Elts []Expr
	}
	Slice struct {
		exprNode
		Lower, Upper, Step Expr // nil for none
	}
	// TypeParam is a type parameter: a TypeVar, TypeVarTuple or ParamSpec, as Kind says.
	TypeParam struct {
		exprNode
		Kind           string
		Name           string
		Bound, Default Expr // nil for none
	}
)

// Bytes is the value of a bytes literal.
type Bytes string

// Ellipsis is the value of the literal `...`.
type Ellipsis struct{}

// The parts of statements and expressions.
type (
	Arguments struct {
		Posonlyargs, Args []*Arg
		Vararg            *Arg // nil for none
		Kwonlyargs        []*Arg
		KwDefaults        []Expr // nil for none
		Kwarg             *Arg   // nil for none
		Defaults          []Expr
	}
	Arg struct {
		Span
		Name       string
		Annotation Expr // nil for none
	}
	Keyword struct {
		Span
		Name  string // empty for **value
		Value Expr
	}
	Alias struct {
		Span
		Name, AsName string
	}
	WithItem struct {
		ContextExpr, OptionalVars Expr // the latter nil for none
	}
	ExceptHandler struct {
		Span
		Type Expr // nil for none
		Name string
		Body []Stmt
	}
	Generator struct {
		Target, Iter Expr
		Ifs          []Expr
		Async        bool
	}
	MatchCase struct {
		Pattern Pattern
		Guard   Expr // nil for none
		Body    []Stmt
	}
)

// Pattern is a pattern of a match statement.
type Pattern interface {
	Node
	pattern()
}

type patternNode struct{ Span }

func (patternNode) pattern() {}

// The patterns.
type (
	MatchValue struct {
		patternNode
		Value Expr
	}
	MatchSingleton struct {
		patternNode
		Value any
	}
	MatchSequence struct {
		patternNode
		Patterns []Pattern
	}
	MatchMapping struct {
		patternNode
		Keys     []Expr
		Patterns []Pattern
		Rest     string
	}
	MatchClass struct {
		patternNode
		Cls         Expr
		Patterns    []Pattern
		KwdAttrs    []string
		KwdPatterns []Pattern
	}
	MatchStar struct {
		patternNode
		Name string
	}
	MatchAs struct {
		patternNode
		Pattern Pattern // nil for none
		Name    string
	}
	MatchOr struct {
		patternNode
		Patterns []Pattern
	}
)
