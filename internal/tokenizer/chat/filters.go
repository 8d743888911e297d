package chat

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filters are the filters by name. The value that one is applied to is its first argument.
var filters = map[string]builtin{
	"abs":        {absolute},
	"capitalize": {func(c *call) any { s := c.selfText(); c.done(); return capitalize(s) }},
	"count":      {length},
	"d":          {defaultValue},
	"default":    {defaultValue},
	"dictsort":   {sortMap},
	"e":          {escapeHTML},
	"escape":     {escapeHTML},
	"first":      {func(c *call) any { return end(c, false) }},
	"float":      {toFloat},
	"indent":     {indent},
	"int":        {toInteger},
	"items":      {mapItems},
	"join":       {join},
	"last":       {func(c *call) any { return end(c, true) }},
	"length":     {length},
	"list":       {func(c *call) any { items := c.items(); c.done(); return &list{items: slices.Clone(items)} }},
	"lower":      {func(c *call) any { s := c.selfText(); c.done(); return strings.ToLower(s) }},
	"map":        {mapped},
	"max":        {func(c *call) any { return extreme(c, 1) }},
	"min":        {func(c *call) any { return extreme(c, -1) }},
	"reject":     {func(c *call) any { return chosen(c, false, false) }},
	"rejectattr": {func(c *call) any { return chosen(c, true, false) }},
	"replace":    {replaceFilter},
	"reverse":    {reverse},
	"round":      {round},
	"safe":       {func(c *call) any { s := c.selfText(); c.done(); return s }},
	"select":     {func(c *call) any { return chosen(c, false, true) }},
	"selectattr": {func(c *call) any { return chosen(c, true, true) }},
	"sort":       {sorted},
	"string":     {func(c *call) any { s := c.selfText(); c.done(); return s }},
	"sum":        {sum},
	"title":      {title},
	"tojson":     {toJSON},
	"trim":       {trimFilter},
	"unique":     {unique},
	"upper":      {func(c *call) any { s := c.selfText(); c.done(); return strings.ToUpper(s) }},
	"wordcount":  {countWords},
}

func absolute(c *call) any {
	v := c.self()
	c.done()
	if i, ok := integer(v); ok {
		return max(i, -i)
	}
	f, ok := v.(float64)
	if !ok {
		c.fail("given %s, want a number", typeName(v))
	}
	return math.Abs(f)
}

func length(c *call) any {
	v := c.self()
	c.done()
	switch v := v.(type) {
	case undefined:
		return int64(0)
	case string:
		return int64(utf8.RuneCountInString(v))
	case *list:
		return int64(len(v.items))
	case *Map:
		return int64(len(v.keys))
	}
	c.fail("%s has no length", typeName(v))
	return nil
}

func defaultValue(c *call) any {
	v, otherwise, falsy := c.self(), c.argument(1, "default_value", ""), truth(c.argument(2, "boolean", false))
	c.done()
	if _, missing := v.(undefined); missing || falsy && !truth(v) {
		return otherwise
	}
	return v
}

func sortMap(c *call) any {
	v := c.self()
	sensitive, by, backwards := truth(c.argument(1, "case_sensitive", false)), c.argument(2, "by", "key"), truth(c.argument(3, "reverse", false))
	c.done()
	m, ok := v.(*Map)
	if !ok {
		c.fail("given %s, want a mapping", typeName(v))
	}
	pairs := pairsOf(m)
	at := 0
	if by == "value" {
		at = 1
	}
	sortItems(c, pairs, func(v any) any { return v.(*list).items[at] }, sensitive, backwards)
	return &list{items: pairs}
}

func escapeHTML(c *call) any {
	s := c.selfText()
	c.done()
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&#34;", "'", "&#39;").Replace(s)
}

// end returns the first or the last item.
func end(c *call, last bool) any {
	items := c.items()
	c.done()
	switch {
	case len(items) == 0:
		return undefined{"an item of an empty list"}
	case last:
		return items[len(items)-1]
	}
	return items[0]
}

func toFloat(c *call) any {
	v, otherwise := c.self(), c.argument(1, "default", 0.0)
	c.done()
	if f, ok := number(v); ok {
		return f
	}
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f
		}
	}
	return otherwise
}

func toInteger(c *call) any {
	v, otherwise, base := c.self(), c.argument(1, "default", int64(0)), c.integer(2, "base", 10)
	c.done()
	if i, ok := integer(v); ok {
		return i
	}
	f, ok := v.(float64)
	if s, isText := v.(string); isText {
		if base < 2 || base > 36 {
			c.fail("given the base %d, want 2 to 36", base)
		}
		s = strings.TrimSpace(s)
		if i, err := strconv.ParseInt(s, int(base), 64); err == nil {
			return i
		}
		var err error
		f, err = strconv.ParseFloat(s, 64)
		ok = err == nil
	}
	if !ok || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return otherwise
	}
	return int64(f)
}

// indent puts spaces before every line but the first.
func indent(c *call) any {
	s, width, first, empty := c.selfText(), c.argument(1, "width", int64(4)), truth(c.argument(2, "first", false)), truth(c.argument(3, "blank", false))
	c.done()
	space, ok := width.(string)
	if !ok {
		n, whole := integer(width)
		if !whole || n < 0 || n > 1000 {
			c.fail("given the width %s, want an integer from 0 to 1000 or a string", show(c.walk(), width))
		}
		space = strings.Repeat(" ", int(n))
	}
	var b strings.Builder
	begin := true
	for line := range strings.SplitAfterSeq(s, "\n") {
		c.e.spend(c.at, (len(space)+len(line))/64)
		if begin && first || !begin && (empty || line != "" && line != "\n") {
			b.WriteString(space)
		}
		b.WriteString(line)
		if b.Len() > maxOutput {
			c.fail("the text is longer than %d bytes", maxOutput)
		}
		begin = false
	}
	return b.String()
}

func countWords(c *call) any {
	s := c.selfText()
	c.done()
	n, inWord := int64(0), false
	for r := range c.e.runes(c.at, s) {
		space := unicode.IsSpace(r)
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	return n
}

func pairsOf(m *Map) []any {
	all := make([]any, len(m.keys))
	for i, key := range m.keys {
		all[i] = &list{[]any{key, m.values[i]}, true}
	}
	return all
}

func mapItems(c *call) any {
	v := c.self()
	c.done()
	switch v := v.(type) {
	case undefined:
		return &list{}
	case *Map:
		return &list{items: pairsOf(v)}
	}
	c.fail("given %s, want a mapping", typeName(v))
	return nil
}

func join(c *call) any {
	items, between, attribute := c.items(), show(c.walk(), c.argument(1, "d", "")), c.argument(2, "attribute", nil)
	c.done()
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteString(between)
		}
		if attribute != nil {
			item = c.attributeOf(item, attribute)
		}
		b.WriteString(show(c.walk(), item))
		if b.Len() > maxOutput {
			c.fail("the text is longer than %d bytes", maxOutput)
		}
	}
	return c.e.join(c.at, "", b.String())
}

// mapped returns an attribute of each item, or the result of a filter.
func mapped(c *call) any {
	items := c.items()
	result := &list{}
	if name, ok := c.named["attribute"]; ok {
		delete(c.named, "attribute")
		otherwise, hasDefault := c.named["default"]
		delete(c.named, "default")
		c.done()
		for _, item := range items {
			v := c.attributeOf(item, name)
			if _, missing := v.(undefined); missing && hasDefault {
				v = otherwise
			}
			result.items = append(result.items, v)
		}
		return result
	}
	name := c.text(1, "filter")
	for _, item := range items {
		result.items = append(result.items, c.apply(c.e.filters, "filter", name, item, 2))
	}
	c.done()
	return result
}

// extreme returns the largest item for sign 1, the smallest for -1.
func extreme(c *call, sign int) any {
	items, sensitive, attribute := c.items(), truth(c.argument(1, "case_sensitive", false)), c.argument(2, "attribute", nil)
	c.done()
	if len(items) == 0 {
		return undefined{"an item of an empty list"}
	}
	key := sortKey(c, attribute)
	best := items[0]
	for _, item := range items[1:] {
		if compareKeys(c, key(item), key(best), sensitive) == sign {
			best = item
		}
	}
	return best
}

func sortKey(c *call, attribute any) func(any) any {
	if attribute == nil {
		return func(v any) any { return v }
	}
	return func(v any) any { return c.attributeOf(v, attribute) }
}

func compareKeys(c *call, a, b any, sensitive bool) int {
	if !sensitive {
		a, b = folded(a), folded(b)
	}
	n, ok := order(c.walk(), a, b)
	if !ok {
		c.fail("%s and %s have no order", typeName(a), typeName(b))
	}
	return n
}

func folded(v any) any {
	if s, ok := v.(string); ok {
		return strings.ToLower(s)
	}
	return v
}

func sortItems(c *call, items []any, key func(any) any, sensitive, backwards bool) {
	c.e.spend(c.at, len(items)*8)
	slices.SortStableFunc(items, func(a, b any) int {
		n := compareKeys(c, key(a), key(b), sensitive)
		if backwards {
			return -n
		}
		return n
	})
}

func sorted(c *call) any {
	items := slices.Clone(c.items())
	backwards, sensitive, attribute := truth(c.argument(1, "reverse", false)), truth(c.argument(2, "case_sensitive", false)), c.argument(3, "attribute", nil)
	c.done()
	sortItems(c, items, sortKey(c, attribute), sensitive, backwards)
	return &list{items: items}
}

// chosen returns the items, or those with an attribute, for which a test has a result.
func chosen(c *call, byAttribute, want bool) any {
	items, at := c.items(), 1
	var attribute any
	if byAttribute {
		attribute = c.argument(at, "attribute", undefined{"the attribute"})
		at++
	}
	var name string
	if at < len(c.positional) {
		name = c.text(at, "test")
	}
	c.read = max(c.read, at)
	kept := &list{}
	for _, item := range items {
		v := item
		if byAttribute {
			v = c.attributeOf(item, attribute)
		}
		holds := truth(v)
		if name != "" {
			holds = truth(c.apply(c.e.tests, "test", name, v, at+1))
		}
		if holds == want {
			kept.items = append(kept.items, item)
		}
	}
	return kept
}

func replaceFilter(c *call) any {
	s, old, with, n := c.selfText(), c.text(1, "old"), c.text(2, "new"), c.argument(3, "count", nil)
	c.done()
	return replaced(c, s, old, with, n)
}

// replaced replaces a part of a text, everywhere if n is none.
func replaced(c *call, s, old, with string, n any) any {
	times := -1
	if n != nil {
		i, ok := integer(n)
		if !ok {
			c.fail("given %s as the count, want an integer", typeName(n))
		}
		times = int(min(max(i, -1), math.MaxInt32))
	}
	found := strings.Count(s, old)
	if times >= 0 {
		found = min(found, times)
	}
	size := len(s) + found*(len(with)-len(old))
	if size > maxOutput {
		c.fail("the text is longer than %d bytes", maxOutput)
	}
	var b strings.Builder
	b.Grow(size)
	for n := range found {
		if n%64 == 0 {
			c.e.spend(c.at, 0)
		}
		at := strings.Index(s, old)
		if old == "" && n > 0 { // the next place is behind a character
			_, at = utf8.DecodeRuneInString(s)
		}
		b.WriteString(s[:at])
		b.WriteString(with)
		s = s[at+len(old):]
	}
	b.WriteString(s)
	return b.String()
}

func reverse(c *call) any {
	v := c.self()
	c.done()
	if s, ok := v.(string); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	items := slices.Clone(c.e.items(c.at, v))
	slices.Reverse(items)
	return &list{items: items}
}

// round rounds half to even, as Python does.
func round(c *call) any {
	v, digits, how := c.self(), c.integer(1, "precision", 0), c.argument(2, "method", "common")
	c.done()
	f, ok := number(v)
	if !ok {
		c.fail("given %s, want a number", typeName(v))
	}
	if digits < -300 || digits > 300 {
		c.fail("given the precision %d, want -300 to 300", digits)
	}
	scale := math.Pow(10, float64(digits))
	switch how {
	case "common":
		if digits < 0 {
			return math.RoundToEven(f*scale) / scale
		}
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64) // it is a number
		return rounded
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	c.fail("given the method %s, want common, ceil or floor", show(c.walk(), how))
	return nil
}

func sum(c *call) any {
	items, attribute, total := c.items(), c.argument(1, "attribute", nil), c.argument(2, "start", int64(0))
	c.done()
	for _, item := range items {
		if attribute != nil {
			item = c.attributeOf(item, attribute)
		}
		v, ok := c.e.arithmetic(c.at, "+", total, item)
		if !ok {
			c.fail("given %s, want numbers", typeName(item))
		}
		total = v
	}
	return total
}

func toJSON(c *call) any {
	v, width := c.self(), c.argument(1, "indent", nil)
	style := jsonStyle{item: ", ", pair: ": ", ascii: truth(c.argument(2, "ensure_ascii", false)), sorted: truth(c.argument(4, "sort_keys", false))}
	if width != nil {
		n, ok := integer(width)
		style.indent, _ = width.(string)
		if ok && 0 <= n && n <= 100 {
			style.indent = strings.Repeat(" ", int(n))
		}
		if style.indent == "" {
			c.fail("given the indent %s, want an integer from 1 to 100 or a string", show(c.walk(), width))
		}
		style.item = ","
	}
	if given := c.argument(3, "separators", nil); given != nil {
		pair, ok := given.(*list)
		if !ok || len(pair.items) != 2 {
			c.fail("given %s as separators, want a pair of strings", typeName(given))
		}
		style.item, style.pair = show(c.walk(), pair.items[0]), show(c.walk(), pair.items[1])
	}
	c.done()
	var b strings.Builder
	if unknown := style.write(c.walk(), &b, v, 0); unknown != "" {
		c.fail("%s cannot be written as JSON", unknown)
	}
	return c.e.join(c.at, "", b.String())
}

func trimFilter(c *call) any {
	s := c.selfText()
	chars, ok := c.optionalText(1, "chars")
	c.done()
	if !ok {
		return strings.TrimFunc(s, isSpace)
	}
	return strings.Trim(s, chars)
}

func unique(c *call) any {
	items, sensitive, attribute := c.items(), truth(c.argument(1, "case_sensitive", false)), c.argument(2, "attribute", nil)
	c.done()
	key := sortKey(c, attribute)
	seen := NewMap()
	kept := &list{}
	for _, item := range items {
		k := key(item)
		if !sensitive {
			k = folded(k)
		}
		if !hashable(k) {
			c.fail("given %s, want strings or numbers", typeName(k))
		}
		if _, ok := seen.get(k); !ok {
			seen.set(k, nil)
			kept.items = append(kept.items, item)
		}
	}
	return kept
}

// tests are the tests by name. The value that one looks at is its first argument.
var tests = map[string]builtin{
	"!=":          {func(c *call) any { return two(c, "!=") }},
	"<":           {func(c *call) any { return two(c, "<") }},
	"<=":          {func(c *call) any { return two(c, "<=") }},
	"==":          {func(c *call) any { return two(c, "==") }},
	">":           {func(c *call) any { return two(c, ">") }},
	">=":          {func(c *call) any { return two(c, ">=") }},
	"boolean":     {func(c *call) any { _, ok := one(c).(bool); return ok }},
	"callable":    {func(c *call) any { _, ok := one(c).(*function); return ok }},
	"defined":     {func(c *call) any { _, ok := one(c).(undefined); return !ok }},
	"divisibleby": {func(c *call) any { a, b := whole(c, 0), whole(c, 1); c.done(); return a%nonZero(c, b) == 0 }},
	"eq":          {func(c *call) any { return two(c, "==") }},
	"equalto":     {func(c *call) any { return two(c, "==") }},
	"even":        {func(c *call) any { n := whole(c, 0); c.done(); return n%2 == 0 }},
	"false":       {func(c *call) any { return one(c) == false }},
	"float":       {func(c *call) any { _, ok := one(c).(float64); return ok }},
	"ge":          {func(c *call) any { return two(c, ">=") }},
	"gt":          {func(c *call) any { return two(c, ">") }},
	"greaterthan": {func(c *call) any { return two(c, ">") }},
	"in":          {func(c *call) any { return two(c, "in") }},
	"integer":     {func(c *call) any { _, ok := one(c).(int64); return ok }},
	"iterable":    {iterable},
	"le":          {func(c *call) any { return two(c, "<=") }},
	"lessthan":    {func(c *call) any { return two(c, "<") }},
	"lower": {func(c *call) any {
		s := show(c.walk(), one(c))
		return s == strings.ToLower(s) && s != strings.ToUpper(s)
	}},
	"lt":      {func(c *call) any { return two(c, "<") }},
	"mapping": {func(c *call) any { _, ok := one(c).(*Map); return ok }},
	"ne":      {func(c *call) any { return two(c, "!=") }},
	"none":    {func(c *call) any { return one(c) == nil }},
	"number":  {func(c *call) any { _, ok := number(one(c)); return ok }},
	"odd":     {func(c *call) any { n := whole(c, 0); c.done(); return n%2 != 0 }},
	"sameas": {func(c *call) any {
		a, b := c.self(), c.argument(1, "other", nil)
		c.done()
		return sameAs(c.walk(), a, b)
	}},
	"sequence":  {iterable},
	"string":    {func(c *call) any { _, ok := one(c).(string); return ok }},
	"true":      {func(c *call) any { return one(c) == true }},
	"undefined": {func(c *call) any { _, ok := one(c).(undefined); return ok }},
	"upper": {func(c *call) any {
		s := show(c.walk(), one(c))
		return s == strings.ToUpper(s) && s != strings.ToLower(s)
	}},
}

func one(c *call) any {
	v := c.self()
	c.done()
	return v
}

func two(c *call, op string) bool {
	a, b := c.self(), c.argument(1, "other", undefined{"the other value"})
	c.done()
	return c.e.compare(c.at, op, a, b)
}

func whole(c *call, i int) int64 { return c.integer(i, "num", 0) }

func nonZero(c *call, n int64) int64 {
	if n == 0 {
		c.fail("division by zero")
	}
	return n
}

func sameAs(w walk, a, b any) bool {
	if x, ok := a.(*list); ok {
		y, both := b.(*list)
		return both && x == y
	}
	if x, ok := a.(*Map); ok {
		y, both := b.(*Map)
		return both && x == y
	}
	_, isBool := a.(bool)
	_, bothBool := b.(bool)
	return isBool == bothBool && equal(w, a, b)
}

func iterable(c *call) any {
	switch one(c).(type) {
	case string, *list, *Map, undefined:
		return true
	}
	return false
}
