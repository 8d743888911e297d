package torchfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// step carries out one instruction. The last one returns a stopped.
func (m *machine) step() (any, error) {
	code, err := m.take(1)
	if err != nil {
		return nil, err
	}
	switch op := code[0]; op {
	case '.': // STOP
		v, err := m.pop(1)
		if err != nil {
			return nil, err
		}
		return stopped{v[0]}, nil
	case 0x80: // PROTO
		_, err = m.take(1)
	case 0x95: // FRAME
		_, err = m.take(8)
	case '(': // MARK
		m.push(mark{})
	case '0': // POP
		if len(m.stack) == 0 {
			return nil, errStack
		}
		m.stack = m.stack[:len(m.stack)-1]
	case '1': // POP_MARK
		_, err = m.popMark()
	case 'N', 0x88, 0x89, 'K', 'M', 'J', 0x8a, 'G':
		err = m.scalar(op)
	case 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96:
		err = m.text(op)
	case ']', ')', '}', 0x8f, 't', 0x85, 0x86, 0x87, 0x91:
		err = m.collection(op)
	case 'a', 'e', 's', 'u', 0x90:
		err = m.extend(op)
	case 'q', 'r', 'h', 'j', 0x94:
		err = m.remember(op)
	case 'c', 0x93, 'R', 0x81, 0x92, 'b', 'Q':
		err = m.build(op)
	default:
		err = fmt.Errorf("given the instruction %#x, which is not known: want a pickle that torch has written", op)
	}
	return nil, err
}

func (m *machine) scalar(op byte) error {
	widths := map[byte]uint64{'K': 1, 'M': 2, 'J': 4, 'G': 8}
	switch op {
	case 'N': // NONE
		m.push(nil)
		return nil
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
		return nil
	case 0x8a: // LONG1
		part, err := m.sized(1)
		if err != nil {
			return err
		}
		m.push(long(part))
		return nil
	}
	if op == 'G' { // BINFLOAT
		part, err := m.take(8)
		if err == nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(part)))
		}
		return err
	}
	n, err := m.number(widths[op])
	if op == 'J' { // BININT
		m.push(int64(int32(n)))
	} else {
		m.push(int64(n))
	}
	return err
}

// long returns a whole number in two's complement, as a *big.Int if it is large.
func long(little []byte) any {
	n := new(big.Int).SetBytes(reversed(little))
	if len(little) > 0 && little[len(little)-1] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(little))))
	}
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func reversed(b []byte) []byte {
	b = slices.Clone(b)
	slices.Reverse(b)
	return b
}

func (m *machine) text(op byte) error {
	width := map[byte]uint64{'X': 4, 0x8c: 1, 0x8d: 8, 'B': 4, 'C': 1, 0x8e: 8, 0x96: 8}[op]
	part, err := m.sized(width)
	if err != nil {
		return err
	}
	if op == 'X' || op == 0x8c || op == 0x8d {
		m.push(string(part))
	} else {
		m.push(part)
	}
	return nil
}

func (m *machine) collection(op byte) error {
	switch op {
	case ']':
		m.push(&list{})
	case ')':
		m.push(tuple(nil))
	case '}':
		m.push(&dict{})
	case 0x8f: // EMPTY_SET
		m.push(&list{})
	case 't': // TUPLE
		values, err := m.popMark()
		m.push(tuple(values))
		return err
	case 0x91: // FROZENSET
		values, err := m.popMark()
		m.push(&list{values})
		return err
	default: // TUPLE1 to TUPLE3
		values, err := m.pop(int(op) - 0x84)
		m.push(tuple(values))
		return err
	}
	return nil
}

// extend adds values to the collection below them.
func (m *machine) extend(op byte) (err error) {
	var values []any
	switch op {
	case 'a': // APPEND
		values, err = m.pop(1)
	case 's': // SETITEM
		values, err = m.pop(2)
	default: // APPENDS, SETITEMS, ADDITEMS
		values, err = m.popMark()
	}
	if err != nil {
		return err
	}
	switch into := m.top().(type) {
	case *list:
		if op == 's' || op == 'u' {
			return errStack
		}
		into.items = append(into.items, values...)
	case *dict:
		return into.set(values)
	case *object: // a collections.OrderedDict
		if into.state == nil {
			into.state = &dict{}
		}
		if d, ok := into.state.(*dict); ok {
			return d.set(values)
		}
		return errStack
	default:
		return errStack
	}
	return nil
}

// set adds keys, each followed by its value.
func (d *dict) set(values []any) error {
	if len(values)%2 != 0 {
		return errStack
	}
	for pair := range slices.Chunk(values, 2) {
		d.pairs = append(d.pairs, [2]any(pair))
	}
	return nil
}

func (m *machine) remember(op byte) error {
	if op == 0x94 { // MEMOIZE
		m.memo[len(m.memo)] = m.top()
		return nil
	}
	width := map[byte]uint64{'q': 1, 'h': 1, 'r': 4, 'j': 4}[op]
	n, err := m.number(width)
	if err != nil {
		return err
	}
	if op == 'q' || op == 'r' { // BINPUT, LONG_BINPUT
		m.memo[int(n)] = m.top()
		return nil
	}
	v, ok := m.memo[int(n)]
	if !ok {
		return errStack
	}
	m.push(v)
	return nil
}

// build notes an object, its class or its state.
func (m *machine) build(op byte) error {
	switch op {
	case 'c': // GLOBAL
		module, err := m.line()
		if err != nil {
			return err
		}
		name, err := m.line()
		if err != nil {
			return err
		}
		return m.global(module, name)
	case 0x93: // STACK_GLOBAL
		values, err := m.pop(2)
		if err != nil {
			return err
		}
		module, _ := values[0].(string)
		name, _ := values[1].(string)
		return m.global(module, name)
	case 'Q': // BINPERSID
		values, err := m.pop(1)
		if err != nil {
			return err
		}
		m.push(persistent{values[0]})
		return nil
	case 'b': // BUILD
		values, err := m.pop(1)
		if err != nil {
			return err
		}
		o, ok := m.top().(*object)
		if !ok {
			return errStack
		}
		if o.state == nil {
			o.state = values[0]
		}
		return nil
	}
	n := 2 // REDUCE, NEWOBJ
	if op == 0x92 {
		n = 3 // NEWOBJ_EX
	}
	values, err := m.pop(n)
	if err != nil {
		return err
	}
	c, ok := values[0].(class)
	args, isTuple := values[1].(tuple)
	if !ok || !isTuple {
		return errStack
	}
	m.push(&object{class: c, args: args})
	return nil
}

// global notes a class, unless no checkpoint needs it.
func (m *machine) global(module, name string) error {
	if len(module)+len(name) > maxClass { // which instructions of a few bytes could repeat
		return fmt.Errorf("given a class whose name has %d bytes, want at most %d", len(module)+len(name), maxClass)
	}
	full := class(module + "." + name)
	if !allowed.MatchString(string(full)) {
		return fmt.Errorf("given the class %q, want one that holds weights: torch would call it, so do not load this file there", full)
	}
	m.push(full)
	return nil
}
