package pyreader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Explanation says what is known about one patch.
type Explanation struct {
	Record
	Comments []string `json:"comments"` // beside the registration
	Order    []Shared `json:"order"`    // symbols that other patches also change
	Upgrade  []string `json:"upgrade"`  // what to check when the framework is upgraded
	Replaced []string `json:"replaced"` // other registrations of the id, which have no effect
}

// Shared is a symbol that several patches change, with the patches in the order in which they run.
type Shared struct {
	Symbol  string  `json:"symbol"`
	Patches []Taker `json:"patches"`
}

// Taker is a patch that changes a symbol.
type Taker struct {
	ID       string `json:"id"`
	Phase    string `json:"phase"`
	Priority int    `json:"priority"`
	Style    Style  `json:"style"`
}

// Explain says what a patch changes, when and why, and which other patches change the same.
func (c *Checkout) Explain(id string) (*Explanation, error) {
	for i := range c.Records {
		r := &c.Records[i]
		if r.ID != id || !r.Effective {
			continue
		}
		e := &Explanation{Record: *r, Comments: c.comments(i), Order: []Shared{}, Upgrade: upgrade(r), Replaced: []string{}}
		if e.Doc == "" {
			e.Doc = docstring(c.handlers[i].handler.Module.File.Body)
		}
		for _, symbol := range r.Symbols {
			if takers := c.takers(r.Backend, symbol); len(takers) > 1 {
				e.Order = append(e.Order, Shared{symbol, takers})
			}
		}
		for _, other := range c.Records {
			if other.ID == id && !other.Effective {
				e.Replaced = append(e.Replaced, other.Location())
			}
		}
		return e, nil
	}
	return nil, &UnknownError{What: "id", Given: id, Known: c.ids()}
}

// takers returns the patches of a backend that change a symbol, in the order in which they run.
func (c *Checkout) takers(backend, symbol string) []Taker {
	var found []int
	for i := range c.Records {
		if r := &c.Records[i]; r.Effective && (r.Backend == backend || r.Backend == "" || backend == "") && slices.Contains(r.Symbols, symbol) {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int {
		x, y := &c.Records[a], &c.Records[b]
		return cmp.Or(cmp.Compare(slices.Index(phases, x.Phase), slices.Index(phases, y.Phase)), cmp.Compare(x.Priority, y.Priority))
	})
	var takers []Taker
	for _, i := range found {
		r := &c.Records[i]
		t := Taker{ID: r.ID, Phase: r.Phase, Priority: r.Priority}
		for _, e := range r.Effects {
			if e.Target == symbol {
				t.Style = e.Style
			}
		}
		takers = append(takers, t)
	}
	return takers
}

// comments returns the comments in a registration and directly above it, without their marks.
func (c *Checkout) comments(i int) []string {
	fn := c.handlers[i].handler
	file, start, end := fn.Module.File, fn.Def.Start, fn.Def.Body[0].Start
	for _, d := range fn.Def.Decorators {
		start = min(start, d.Start)
	}
	first := file.Line(start)
	var texts []string
	for _, comment := range slices.Backward(file.Comments) {
		if comment.Start < start && file.Line(comment.Start) == first-1 {
			texts = append(texts, comment.Text)
			first--
		}
	}
	slices.Reverse(texts)
	for _, comment := range file.Comments {
		if comment.Start >= start && comment.Start < end {
			texts = append(texts, comment.Text)
		}
	}
	found := []string{}
	for _, text := range texts {
		text = strings.TrimSpace(strings.TrimLeft(text, "#"))
		if strings.Trim(text, "-=─ ") != "" && !strings.HasPrefix(text, "noqa") {
			found = append(found, text)
		}
	}
	return found
}

// upgrade lists what a patch assumes about the framework.
func upgrade(r *Record) []string {
	list := []string{}
	add := func(format string, args ...any) { list = addTo(list, fmt.Sprintf(format, args...)) }
	for _, e := range r.Effects {
		switch {
		case e.Style == "" || e.Alternative:
		case e.Style == Wrap:
			add("%s exists, and takes the parameters that the wrapper passes on", e.Target)
		case e.Style == Rewrite:
			for _, anchor := range e.Anchors {
				line, _, _ := strings.Cut(strings.TrimSpace(anchor[0]), "\n")
				add("the source of %s has this text exactly once: %s", e.Target, line)
			}
		case e.Style == Replace:
			add("%s exists, is used by that name, and has the parameters of its replacement", e.Target)
		case e.Style == Item || e.Style == Mutate || e.Style == Modules:
			add("%s is what the framework reads", e.Target)
		case e.Style == Arg:
			add("the argument %s has the same meaning", e.Target)
		case e.Style == Env:
			add("the variable %s is read after this phase", e.Target)
		}
	}
	if r.Condition != nil {
		for _, key := range r.Condition.Keys {
			if !strings.HasPrefix(key, "<") {
				add("the parameter %s still has this name", key)
			}
		}
	}
	for _, v := range r.BackendVersions {
		add("the version matches %s", v)
	}
	return list
}

// Hit is a place where a word occurs in a patch.
type Hit struct {
	ID    string `json:"id"`
	Where string `json:"where"` // id, target, parameter, variable, text
	Text  string `json:"text"`
	rank  int
}

// Search returns the patches that have all of some words in their ids, targets, parameters,
// variables or texts. Those with a word in the id come first. If nothing is found, the error
// suggests words.
func (c *Checkout) Search(words []string) ([]Hit, error) {
	var hits []Hit
	vocabulary := []string{}
	for i := range c.Records {
		r := &c.Records[i]
		if !r.Effective {
			continue
		}
		places := searchable(r)
		for _, p := range places {
			if p.rank < textRank {
				vocabulary = append(vocabulary, strings.FieldsFunc(p.Text, func(c rune) bool { return strings.ContainsRune("._[]()'\"<> ", c) })...)
			}
		}
		best := Hit{rank: textRank + 1}
		for n, word := range words {
			at := slices.IndexFunc(places, func(p Hit) bool { return strings.Contains(strings.ToLower(p.Text), strings.ToLower(word)) })
			if at < 0 {
				best.rank = textRank + 1
				break
			}
			if n == 0 || places[at].rank < best.rank {
				best = places[at]
			}
		}
		if best.rank <= textRank {
			best.ID = r.ID
			hits = append(hits, best)
		}
	}
	if len(hits) == 0 {
		slices.Sort(vocabulary)
		return nil, noWord(words, slices.Compact(vocabulary))
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(a.rank, b.rank) })
	return hits, nil
}

// textRank is the rank of hits in descriptions, which come last.
const textRank = 4

// searchable returns the places of a record that are searched, the most specific first.
func searchable(r *Record) []Hit {
	places := []Hit{{Where: "id", Text: r.ID}}
	for _, e := range r.Effects {
		places = append(places, Hit{Where: "target", Text: e.Target, rank: 1})
	}
	if r.Condition != nil {
		for _, key := range r.Condition.Keys {
			places = append(places, Hit{Where: "parameter", Text: key, rank: 2})
		}
		for _, name := range r.Condition.Env {
			places = append(places, Hit{Where: "variable", Text: name, rank: 3})
		}
		places = append(places, Hit{Where: "text", Text: r.Condition.Words, rank: textRank})
	}
	for _, text := range []string{r.Summary(), strings.Join(strings.Fields(r.Doc), " "), r.File, strings.Join(r.Tags, " ")} {
		places = append(places, Hit{Where: "text", Text: text, rank: textRank})
	}
	return places
}
