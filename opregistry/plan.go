package opregistry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/primus-fl/primus/tensor"
)

// plan is what the description of an op is compiled to: what a call of it is checked against.
type plan struct {
	op       string
	params   []Param
	offsets  []uintptr // of params
	operands []operand
	numbers  []number
	saved    int   // the offset of the record of a family, −1 without one
	lead     int   // an operand, −1 without operands
	order    []int // of checking
	ordered  []*operand
	lists    *listPlan
	symbols  []string // of shapes; rows is the first
	unset    sizes    // no symbol has a length
	leading  bool     // a shape has ..
	singles  bool     // every operand is one tensor, and there are few of them
	written  uint32   // of singles: the operands that every call writes
	depends  uint32   // those that some calls write and others read

	signed  []uintptr // the offsets of operands that are one tensor
	several []int     // the operands that are lists
	options []option  // that a signature depends on
}

// form says where the tensors of an operand are.
type form uint8

const (
	formOne   form = iota // a field
	formList              // a slice of tensors
	formRow               // one list of a slice of lists
	formField             // a field of the structs of a slice
)

// operand is a tensor argument, or a list of them that have one description.
type operand struct {
	// Every call reads these fields, so they are adjacent.
	index   int
	offset  uintptr // of the field in the struct that it is in
	form    form
	need    need
	packed  bool // contiguous
	masked  bool // −∞ stands for what is left out
	length  int8 // the symbol for the number of tensors, −1
	dtypes  DTypes
	like    int  // the operand whose dtype it has, −1
	likeOne bool // like is a formOne, whose offset is likeAt
	likeAt  uintptr
	shape   shapeRule
	over    uint64 // the operands that are written and may be the same view as this one
	given   condition

	param  string  // the name of the argument
	name   string  // of a list: before the index
	suffix string  // of formField: after the index
	in     uintptr // formField: the offset of the slice in the argument struct
	stride uintptr // formField: the size of the structs
	row    int     // formRow
	access accessSpec
	when   condition
}

// condition is a bool or what may be nil: an argument on which another one depends.
type condition struct {
	offset  uintptr
	pointer bool
}

func (c condition) holds(args unsafe.Pointer) bool {
	p := unsafe.Add(args, c.offset)
	if c.pointer {
		return *(*unsafe.Pointer)(p) != nil
	}
	return *(*bool)(p)
}

// listPlan describes a slice of lists.
type listPlan struct {
	name        string
	offset      uintptr
	first       int // operand
	least, most int
	names       string
	length      int8
}

// maxOperands bounds the operands of an op, because a mask has a bit for each.
const maxOperands = 64

// maxSymbols bounds the symbols of an op's shapes.
const maxSymbols = 8

// rowsSymbol is the index of the symbol rows: the product of the axes that .. stands for.
const rowsSymbol = 0

// compiler makes a plan.
type compiler struct {
	*plan
	where  map[string][]string // words of Schema.Where by name
	text   string              // Schema.Lists
	used   map[string]bool
	specs  []spec               // of operands
	prefix []string             // of operands: of the names of the struct that they are in
	conds  map[string]condition // by name of argument
}

// fault is a mistake in the description of an op.
func fault(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// compile makes the plan of an op with tags. It panics when the description is wrong.
func compile(op string, t reflect.Type, where, lists string) *plan {
	c := &compiler{plan: &plan{op: op, saved: -1, lead: -1, symbols: []string{"rows"}}, used: map[string]bool{}, conds: map[string]condition{}}
	if t.Kind() != reflect.Struct {
		fault("given arguments of type %v, want a struct", t)
	}
	c.where, c.text = c.items(where), lists
	c.structure(t, place{access: accessSpec{}})
	if lists != "" && c.lists == nil {
		fault("Lists describes lists, but no field is one of lists")
	}
	for name := range c.where {
		if !c.used[name] {
			fault("Where describes %s, but no argument has that name", name)
		}
	}
	c.indexes()
	for _, p := range c.params {
		c.offsets = append(c.offsets, offsetOf(t, p.Path))
	}
	if len(c.operands) > maxOperands {
		fault("given %d operands, want at most %d", len(c.operands), maxOperands)
	}
	for i := range c.operands {
		c.operands[i].index = i
		c.resolve(i)
	}
	for i, s := range c.specs {
		if s.lead || i == 0 {
			c.lead = i
		}
	}
	for i := range c.operands {
		c.order = append(c.order, i)
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return c.turn(a) - c.turn(b) })
	for at := range c.order {
		c.shapeOf(at)
	}
	c.bound()
	for _, i := range c.order {
		c.ordered = append(c.ordered, &c.operands[i])
	}
	for i := range c.unset.of {
		c.unset.of[i] = -1
	}
	for i := range c.operands {
		if o := &c.operands[i]; o.form == formOne {
			c.signed = append(c.signed, o.offset)
		} else {
			c.several = append(c.several, i)
		}
	}
	c.singles = len(c.operands) <= fewOperands && !slices.ContainsFunc(c.operands, func(o operand) bool { return o.form != formOne })
	if c.singles {
		for i, o := range c.operands {
			switch {
			case o.access.hook || o.access.when != "" && (o.access.base == AccessRead) != (o.access.other == AccessRead):
				c.depends |= 1 << i
			case o.access.base != AccessRead:
				c.written |= 1 << i
			}
		}
	}
	return c.plan
}

// turn says when an operand is checked: those whose axes may set symbols come first, the lead
// operand before the others, then those that only use symbols.
func (c *compiler) turn(i int) int {
	switch axes := strings.HasPrefix(c.specs[i].shape, "["); {
	case axes && i == c.lead:
		return 0
	case axes:
		return 1
	default:
		return 2
	}
}

// items cuts "name words; name words" at its semicolons.
func (c *compiler) items(text string) map[string][]string {
	found := map[string][]string{}
	for item := range strings.SplitSeq(text, ";") {
		words, err := splitTag(item)
		if err != nil {
			fault("%v", err)
		}
		if len(words) > 0 {
			found[words[0]] = words[1:]
		}
	}
	return found
}

// place is where a struct with arguments is.
type place struct {
	prefix string // of names
	index  int
	offset uintptr
	path   []int
	access accessSpec // of operands without one of their own
	form   form       // formField for the structs of a slice
	in     uintptr
	list   string // formField: name of the slice
	stride uintptr
}

func (c *compiler) structure(t reflect.Type, at place) {
	for i := range t.NumField() {
		f := t.Field(i)
		offset, path := at.offset+f.Offset, append(slices.Clone(at.path), i)
		if f.Type == savedType {
			c.saved = int(offset)
			continue
		}
		tag, tagged := f.Tag.Lookup("op")
		if !tagged || !f.IsExported() {
			fault("field %s has no tag op, or is not exported", f.Name)
		}
		s, err := parseTag(tag)
		if err != nil {
			fault("field %s: %v", f.Name, err)
		}
		if s.name == "" && !f.Anonymous {
			fault("field %s has no name in its tag %q", f.Name, tag)
		}
		name := at.prefix + s.name
		if words, ok := c.where[name]; ok && s.name != "" {
			c.used[name] = true
			if err := s.apply(words); err != nil {
				fault("Where: %v", err)
			}
		}
		if s.access == (accessSpec{}) {
			s.access = at.access
		}
		below := place{prefix: name + ".", index: at.index + max(s.index, 0), offset: offset, path: path, access: s.access, form: at.form, in: at.in, list: at.list, stride: at.stride}
		if f.Anonymous {
			below.prefix = at.prefix
		}
		sort := sortOf(f.Type)
		p := Param{Index: -1, Name: name, Sort: sort, Type: f.Type, Path: path, Bound: s.bound}
		for _, was := range s.was {
			p.Was = append(p.Was, at.prefix+was)
		}
		if s.index >= 0 && at.form != formField {
			p.Index = at.index + s.index
		}
		o := operand{param: name, name: name, form: at.form, offset: offset, in: at.in, stride: at.stride, like: -1, length: -1}
		if at.form == formField {
			o.name, o.suffix = at.list, strings.TrimPrefix(name, at.list)
		}
		switch {
		case sort == SortTensor:
			c.operand(p, o, s, at.prefix)
		case sort == SortTensors && at.form == formOne:
			o.form = formList
			c.operand(p, o, s, at.prefix)
		case sort == SortLists && at.form == formOne && c.lists == nil:
			c.plan.lists = &listPlan{name: name, offset: offset, first: len(c.operands), length: -1}
			if s.length != "" {
				c.plan.lists.length = c.symbol(s.length)
			}
			c.params = append(c.params, p)
			c.listsOf(c.text)
		case sort == SortNone && f.Type.Kind() == reflect.Struct:
			c.structure(f.Type, below)
		case sort == SortNone && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct && at.form == formOne:
			if s.index >= 0 {
				fault("field %s of type %v has no form in C, want - for its index", f.Name, f.Type)
			}
			c.params = append(c.params, p)
			below.form, below.in, below.stride, below.list, below.offset = formField, offset, f.Type.Elem().Size(), name, 0
			c.structure(f.Type.Elem(), below)
		case sort == SortNone && p.Index >= 0:
			fault("field %s of type %v has no form in C, want - for its index", f.Name, f.Type)
		case sort == SortTensors || sort == SortLists:
			fault("field %s: a second field of type %v or one in a slice is not supported", f.Name, f.Type)
		default:
			if at.form == formField {
				continue
			}
			if f.Type.Kind() == reflect.Bool {
				c.conds[name] = condition{offset: offset}
			}
			p.Optional = c.number(f, s, offset, name)
			c.option(f.Type, offset, name)
			c.params = append(c.params, p)
		}
	}
}

// operand adds an operand; its references to others are resolved when all are known.
func (c *compiler) operand(p Param, o operand, s spec, prefix string) {
	if s.access.base == AccessUnspecified {
		fault("operand %s has no access, want read, write or update", p.Name)
	}
	if s.dtypes == 0 && s.like == "" {
		fault("operand %s has no dtype, want one such as compute or f32", p.Name)
	}
	o.access, o.dtypes, o.need, o.packed, o.masked = s.access, s.dtypes, s.needed, s.packed, s.masked
	p.Access, p.Shape, p.MayBe, p.Contiguous = s.access.String(), s.shape, s.may, s.packed
	switch s.needed {
	case needNever:
		p.Given = "?"
	case needWhen:
		p.Given = "?:" + s.given
	}
	p.Optional = s.needed != needAlways
	p.DTypes = s.dtypes.String()
	if s.like != "" {
		p.DTypes = "=" + s.like
	}
	if o.form == formOne || o.form == formList {
		c.conds[p.Name] = condition{offset: o.offset, pointer: true}
		c.params = append(c.params, p)
	}
	c.operands, c.specs, c.prefix = append(c.operands, o), append(c.specs, s), append(c.prefix, prefix)
}

// listsOf adds an operand for each list that Schema.Lists describes.
func (c *compiler) listsOf(text string) {
	l := c.plan.lists
	p := &c.params[len(c.params)-1]
	var names []string
	first := len(c.operands)
	for item := range strings.SplitSeq(text, ";") {
		words, err := splitTag(item)
		if err != nil || len(words) == 0 {
			fault("Lists %q: want items such as g read compute, joined by semicolons", text)
		}
		name, optional := strings.CutSuffix(words[0], "?")
		s := spec{index: -1, name: name}
		if err := s.apply(words[1:]); err != nil {
			fault("Lists: %v", err)
		}
		if s.access.base == AccessUnspecified || s.dtypes == 0 || s.shape != "" && s.shape != "(1)" {
			fault("Lists: list %s needs an access and dtypes, and has no shape but (1)", name)
		}
		names = append(names, words[0])
		c.operands = append(c.operands, operand{
			param: l.name, name: fmt.Sprintf("%s[%d]", l.name, l.most), form: formRow, offset: l.offset, row: l.most,
			dtypes: s.dtypes, like: -1, access: s.access, length: -1,
		})
		c.specs, c.prefix = append(c.specs, s), append(c.prefix, "")
		p.Lists = append(p.Lists, ListParam{Name: name, Access: s.access.String(), DTypes: s.dtypes.String(), Shape: s.shape, Optional: optional, MayBe: s.may})
		l.most++
		if !optional {
			l.least = l.most
		}
	}
	l.first, l.names = first, strings.Join(names, ", ")
}

// indexes requires that the indexes of the arguments are those from 0 on.
func (c *compiler) indexes() {
	byIndex := map[int]string{}
	byMacro := map[string]bool{}
	for _, p := range c.params {
		if byMacro[p.Macro()] {
			fault("two arguments have the name %s in C", p.Macro())
		}
		byMacro[p.Macro()] = true
		if p.Index < 0 {
			continue
		}
		if other, taken := byIndex[p.Index]; taken {
			fault("arguments %s and %s both have the index %d", other, p.Name, p.Index)
		}
		byIndex[p.Index] = p.Name
	}
	for i := range len(byIndex) {
		if byIndex[i] == "" {
			fault("no argument has the index %d, want indexes from 0 to %d", i, len(byIndex)-1)
		}
	}
}

// find returns the operand with a name, as one of a struct names another of it.
func (c *compiler) find(i int, name string) int {
	for _, full := range []string{c.prefix[i] + name, name} {
		for k, o := range c.operands {
			if o.form == formRow && c.operands[i].form == formRow && c.specs[k].name == name || o.form != formRow && o.param == full {
				return k
			}
		}
	}
	fault("operand %s names the operand %s, which there is not", c.operands[i].name, name)
	return -1
}

func (c *compiler) condition(i int, name string) condition {
	for _, full := range []string{c.prefix[i] + name, name} {
		if cond, ok := c.conds[full]; ok {
			return cond
		}
	}
	fault("operand %s depends on %s, which is no argument", c.operands[i].name, name)
	return condition{}
}

// resolve finds what an operand names.
func (c *compiler) resolve(i int) {
	o, s := &c.operands[i], &c.specs[i]
	if s.like != "" {
		o.like = c.find(i, s.like)
		o.likeOne, o.likeAt = c.operands[o.like].form == formOne, c.operands[o.like].offset
		o.dtypes = anyType
	}
	if s.needed == needWhen {
		o.given = c.condition(i, s.given)
	}
	if o.access.when != "" {
		o.when = c.condition(i, o.access.when)
	}
	if s.length != "" {
		o.length = c.symbol(s.length)
	}
	for _, name := range s.may {
		other := c.find(i, name)
		if o.access.base == AccessRead && o.access.other <= AccessRead {
			fault("operand %s is only read and may be %s: say so at the operand that is written", o.name, name)
		}
		c.operands[other].over |= 1 << i
	}
}

// tensors returns the address of the first tensor of an operand in a call, their number and the
// distance between two of them.
func (o *operand) tensors(args unsafe.Pointer) (first unsafe.Pointer, n int, stride uintptr) {
	switch o.form {
	case formOne:
		return unsafe.Add(args, o.offset), 1, 0
	case formList:
		list := *(*[]*tensor.Tensor)(unsafe.Add(args, o.offset))
		return unsafe.Pointer(unsafe.SliceData(list)), len(list), unsafe.Sizeof(list[0])
	case formRow:
		lists := *(*[][]*tensor.Tensor)(unsafe.Add(args, o.offset))
		if o.row >= len(lists) {
			return nil, 0, 0
		}
		list := lists[o.row]
		return unsafe.Pointer(unsafe.SliceData(list)), len(list), unsafe.Sizeof(list[0])
	default:
		// The header of a slice is the same for every type of its elements.
		list := *(*[]struct{})(unsafe.Add(args, o.in))
		if len(list) == 0 {
			return nil, 0, 0
		}
		return unsafe.Add(unsafe.Pointer(unsafe.SliceData(list)), o.offset), len(list), o.stride
	}
}

// one returns the tensor of a formOne.
func (o *operand) one(args unsafe.Pointer) *tensor.Tensor {
	return *(**tensor.Tensor)(unsafe.Add(args, o.offset))
}

// tensorAt returns tensor i of those that start at an address.
func tensorAt(first unsafe.Pointer, i int, stride uintptr) *tensor.Tensor {
	return *(**tensor.Tensor)(unsafe.Add(first, uintptr(i)*stride))
}

// nameOf returns the name of tensor i of an operand.
func (o *operand) nameOf(i int) string {
	if o.form == formOne {
		return o.name
	}
	return fmt.Sprintf("%s[%d]%s", o.name, i, o.suffix)
}

// accessOf returns what a call does to tensor i of an operand.
func (o *operand) accessOf(args unsafe.Pointer, h hooks, i int) Access {
	switch {
	case o.access.hook:
		return h.accessOf(o.param, i)
	case o.access.when != "" && o.when.holds(args):
		return o.access.other
	}
	return o.access.base
}

// list returns the tensors of a call.
func (p *plan) list(args unsafe.Pointer, h hooks) []Operand {
	var found []Operand
	for k := range p.operands {
		o := &p.operands[k]
		first, n, stride := o.tensors(args)
		for i := range n {
			if t := tensorAt(first, i, stride); t != nil {
				found = append(found, Operand{Name: o.nameOf(i), Tensor: t, Access: o.accessOf(args, h, i), Masked: o.masked})
			}
		}
	}
	return found
}

// gives reports whether a call does not leave out an argument: a tensor that is not nil, a list
// that is not empty, a number other than 0.
func (p *plan) gives(args unsafe.Pointer, name string) bool {
	for i := range p.params {
		if p.params[i].Name != name {
			continue
		}
		at, t := unsafe.Add(args, p.offsets[i]), p.params[i].Type
		if t.Kind() == reflect.Slice {
			return len(*(*[]struct{})(at)) > 0 // the header of a slice is the same for every type
		}
		return slices.ContainsFunc(unsafe.Slice((*byte)(at), t.Size()), func(b byte) bool { return b != 0 })
	}
	return false
}

// offsetOf returns where a field of a struct is, and those of the structs in it.
func offsetOf(t reflect.Type, path []int) uintptr {
	at := uintptr(0)
	for _, i := range path {
		f := t.Field(i)
		at, t = at+f.Offset, f.Type
	}
	return at
}

// savedOf returns the record of the family of a call.
func (p *plan) savedOf(args unsafe.Pointer) *Saved {
	if p.saved < 0 {
		return nil
	}
	return *(**Saved)(unsafe.Add(args, p.saved))
}

// leader returns the lead operand of a call; where that is left out, the first one that is not.
func (p *plan) leader(args unsafe.Pointer) *tensor.Tensor {
	if p.lead >= 0 {
		if t := p.first(p.lead, args); t != nil {
			return t
		}
	}
	for _, i := range p.order {
		if t := p.first(i, args); t != nil {
			return t
		}
	}
	return nil
}
