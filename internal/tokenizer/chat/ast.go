package chat

// node is a statement of a template.
type node interface{ position() int }

// expr is an expression.
type expr interface{ position() int }

// at is the offset of a node in the template.
type at int

func (a at) position() int { return int(a) }

// The statements.
type (
	textNode struct {
		at
		text string
	}
	printNode struct {
		at
		value expr
	}
	forNode struct {
		at
		target    target
		over      expr
		condition expr // nil for none
		body      []node
		otherwise []node
	}
	ifNode struct {
		at
		condition expr
		body      []node
		otherwise []node
	}
	setNode struct {
		at
		target target
		value  expr
		body   []node // of a block, whose text is the value
		filter []filterCall
	}
	macroNode struct {
		at
		name       string
		parameters []string
		defaults   []expr // of the last parameters
		body       []node
	}
	filterNode struct {
		at
		filter []filterCall
		body   []node
	}
	generationNode struct {
		at
		body []node
	}
	jumpNode struct {
		at
		next bool // continue, else break
	}
)

// target is what a for or a set assigns to: names, or an attribute of a namespace.
type target struct {
	names     []string
	unpack    bool
	attribute string // of the namespace names[0]
}

// The expressions.
type (
	constExpr struct {
		at
		value any
	}
	nameExpr struct {
		at
		name string
	}
	listExpr struct {
		at
		items []expr
		tuple bool
	}
	dictExpr struct {
		at
		keys, values []expr
	}
	unaryExpr struct {
		at
		op    string
		value expr
	}
	binaryExpr struct {
		at
		op          string
		left, right expr
	}
	compareExpr struct {
		at
		first expr
		ops   []string
		rest  []expr
	}
	ifExpr struct {
		at
		condition, value, otherwise expr // otherwise is nil without else
	}
	attributeExpr struct {
		at
		of   expr
		name string
	}
	indexExpr struct {
		at
		of, index expr
	}
	sliceExpr struct {
		at
		of             expr
		from, to, step expr // nil for none
	}
	callExpr struct {
		at
		function expr
		arguments
	}
	filterExpr struct {
		at
		value expr
		filterCall
	}
	testExpr struct {
		at
		value expr
		name  string
		not   bool
		arguments
	}
)

// arguments are those of a call.
type arguments struct {
	positional []expr
	names      []string
	named      []expr
}

// filterCall is a filter with its arguments.
type filterCall struct {
	at   int
	name string
	arguments
}
