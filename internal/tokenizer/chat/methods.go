package chat

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method returns a method of a value as a function.
func method(name string, m builtin, of any) *function {
	return &function{name, func(c *call) any {
		c.positional = append([]any{of}, c.positional...)
		return m.call(c)
	}}
}

// otherMethods are methods of Python that templates cannot call here. Their names are errors and
// not undefined, so that a template does not go on without them.
var otherMethods = []string{
	"append", "clear", "copy", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort", "update",
	"casefold", "center", "encode", "expandtabs", "format", "format_map", "isidentifier", "isprintable", "ljust", "maketrans", "partition", "rindex", "rjust",
	"rpartition", "swapcase", "translate", "zfill",
}

// mapMethods are the methods of mappings.
var mapMethods = map[string]builtin{
	"get": {func(c *call) any {
		m, key, otherwise := c.self().(*Map), c.argument(1, "", undefined{"the key"}), c.argument(2, "", nil)
		c.done()
		if !hashable(key) {
			c.fail("given %s as a key, want a string or a number", typeName(key))
		}
		if v, ok := m.get(key); ok {
			return v
		}
		return otherwise
	}},
	"items":  {mapItems},
	"keys":   {func(c *call) any { m := one(c).(*Map); return &list{items: slices.Clone(m.keys)} }},
	"values": {func(c *call) any { m := one(c).(*Map); return &list{items: slices.Clone(m.values)} }},
}

// listMethods are the methods of lists.
var listMethods = map[string]builtin{
	"count": {func(c *call) any {
		items, v := c.items(), c.argument(1, "", undefined{"the value"})
		c.done()
		n := int64(0)
		for _, item := range items {
			if equal(c.walk(), item, v) {
				n++
			}
		}
		return n
	}},
	"index": {func(c *call) any {
		items, v := c.items(), c.argument(1, "", undefined{"the value"})
		c.done()
		i := slices.IndexFunc(items, func(item any) bool { return equal(c.walk(), item, v) })
		if i < 0 {
			c.fail("the value is not in the list")
		}
		return int64(i)
	}},
	"reverse": {func(c *call) any { c.fail("it would change a list, want the filter reverse"); return nil }},
}

// stringMethods are the methods of strings.
var stringMethods = map[string]builtin{
	"capitalize": {func(c *call) any { return capitalize(one(c).(string)) }},
	"count": {func(c *call) any {
		s, part := c.selfText(), c.text(1, "")
		c.done()
		return int64(strings.Count(s, part))
	}},
	"endswith": {func(c *call) any { return affix(c, strings.HasSuffix) }},
	"find":     {func(c *call) any { return find(c, strings.Index) }},
	"index":    {indexOf},
	"isalnum": {func(c *call) any {
		return every(c, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	}},
	"isalpha":   {func(c *call) any { return every(c, unicode.IsLetter) }},
	"isdigit":   {func(c *call) any { return every(c, unicode.IsDigit) }},
	"isnumeric": {func(c *call) any { return every(c, unicode.IsNumber) }},
	"isspace":   {func(c *call) any { return every(c, isSpace) }},
	"islower":   {func(c *call) any { s := one(c).(string); return s == strings.ToLower(s) && s != strings.ToUpper(s) }},
	"isupper":   {func(c *call) any { s := one(c).(string); return s == strings.ToUpper(s) && s != strings.ToLower(s) }},
	"join":      {joinMethod},
	"lower":     {func(c *call) any { return strings.ToLower(one(c).(string)) }},
	"lstrip":    {func(c *call) any { return strip(c, true, false) }},
	"removeprefix": {func(c *call) any {
		s, part := c.selfText(), c.text(1, "")
		c.done()
		return strings.TrimPrefix(s, part)
	}},
	"removesuffix": {func(c *call) any {
		s, part := c.selfText(), c.text(1, "")
		c.done()
		return strings.TrimSuffix(s, part)
	}},
	"replace": {func(c *call) any {
		s, old, with, n := c.selfText(), c.text(1, ""), c.text(2, ""), c.argument(3, "count", nil)
		c.done()
		return replaced(c, s, old, with, n)
	}},
	"rfind":      {func(c *call) any { return find(c, strings.LastIndex) }},
	"rsplit":     {func(c *call) any { return split(c, true) }},
	"rstrip":     {func(c *call) any { return strip(c, false, true) }},
	"split":      {func(c *call) any { return split(c, false) }},
	"splitlines": {splitLines},
	"startswith": {func(c *call) any { return affix(c, strings.HasPrefix) }},
	"strip":      {func(c *call) any { return strip(c, true, true) }},
	"title":      {title},
	"upper":      {func(c *call) any { return strings.ToUpper(one(c).(string)) }},
}

// isSpace reports whether Python counts a character as white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
}

// title begins each word with a capital letter.
func title(c *call) any {
	s := c.selfText()
	c.done()
	var b strings.Builder
	inWord := false
	for r := range c.e.runes(c.at, s) {
		switch {
		case !unicode.IsLetter(r):
			inWord = false
			b.WriteRune(r)
		case inWord:
			b.WriteRune(unicode.ToLower(r))
		default:
			inWord = true
			b.WriteRune(unicode.ToTitle(r))
		}
	}
	return b.String()
}

func every(c *call, is func(rune) bool) bool {
	s := one(c).(string)
	for r := range c.e.runes(c.at, s) {
		if !is(r) {
			return false
		}
	}
	return s != ""
}

// affix reports whether a string begins or ends with a string, or with one of a tuple of them.
func affix(c *call, has func(s, part string) bool) any {
	s, part := c.selfText(), c.argument(1, "", undefined{"the part"})
	c.done()
	parts := []any{part}
	if l, ok := part.(*list); ok && l.tuple {
		parts = l.items
	}
	for _, p := range parts {
		text, ok := p.(string)
		if !ok {
			c.fail("given %s, want a string or a tuple of strings", typeName(p))
		}
		if has(s, text) {
			return true
		}
	}
	return false
}

// find returns the index of a part in characters, -1 if it is not there.
func find(c *call, index func(s, part string) int) any {
	s, part := c.selfText(), c.text(1, "")
	c.done()
	i := index(s, part)
	if i < 0 {
		return int64(-1)
	}
	return int64(utf8.RuneCountInString(s[:i]))
}

func indexOf(c *call) any {
	i := find(c, strings.Index)
	if i == int64(-1) {
		c.fail("the part is not in the string")
	}
	return i
}

func joinMethod(c *call) any {
	between, items := c.selfText(), c.e.items(c.at, c.argument(1, "", undefined{"the items"}))
	c.done()
	parts, size := make([]string, len(items)), 0
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			c.fail("given %s, want strings", typeName(item))
		}
		parts[i] = text
		size += len(text) + len(between)
	}
	if size > maxOutput {
		c.fail("the text is longer than %d bytes", maxOutput)
	}
	return c.e.join(c.at, "", strings.Join(parts, between))
}

func strip(c *call, left, right bool) any {
	s := c.selfText()
	chars, given := c.optionalText(1, "")
	c.done()
	drop := isSpace
	if given {
		drop = func(r rune) bool { return strings.ContainsRune(chars, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s
}

// split cuts a string at a separator, or at runs of white space without one, from the right if
// asked to, at most as often as the second argument says.
func split(c *call, right bool) any {
	s := c.selfText()
	by, given := c.optionalText(1, "sep")
	most := c.integer(2, "maxsplit", -1)
	c.done()
	if given && by == "" {
		c.fail("the separator is empty")
	}
	if most < 0 {
		most = math.MaxInt32
	}
	parts := &list{}
	for n := int64(0); ; n++ {
		c.e.spend(c.at, 0)
		var before, after string
		var found bool
		switch {
		case !given && !right:
			s = strings.TrimLeftFunc(s, isSpace)
			i := strings.IndexFunc(s, isSpace)
			if found = i >= 0; found {
				before, after = s[:i], strings.TrimLeftFunc(s[i:], isSpace)
			}
		case !given:
			s = strings.TrimRightFunc(s, isSpace)
			i := strings.LastIndexFunc(s, isSpace)
			if found = i >= 0; found {
				_, size := utf8.DecodeRuneInString(s[i:])
				after, before = s[i+size:], strings.TrimRightFunc(s[:i], isSpace)
			}
		case !right:
			before, after, found = strings.Cut(s, by)
		default:
			if i := strings.LastIndex(s, by); i >= 0 {
				before, after, found = s[:i], s[i+len(by):], true
			}
		}
		if !found || n >= most {
			if given || s != "" {
				parts.items = append(parts.items, s)
			}
			break
		}
		if right {
			parts.items, s = append(parts.items, after), before
		} else {
			parts.items, s = append(parts.items, before), after
		}
	}
	if right {
		slices.Reverse(parts.items)
	}
	return parts
}

func splitLines(c *call) any {
	s, keep := c.selfText(), truth(c.argument(1, "keepends", false))
	c.done()
	parts := &list{}
	for line := range strings.Lines(strings.ReplaceAll(s, "\r\n", "\n")) {
		c.e.spend(c.at, 0)
		if !keep {
			line = strings.TrimSuffix(line, "\n")
		}
		parts.items = append(parts.items, line)
	}
	return parts
}
