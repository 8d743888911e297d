package formats

import (
	"sort"

	"github.com/primus-fl/primus/document"
)

// All returns the formats of this package.
func All() *document.Formats {
	all, err := document.NewFormats(YAML{}, JSON{}, TOML{})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return all
}

// scalarValue returns a scalar as a file spells it.
func scalarValue(data any, text string, origin document.Origin) (document.Value, error) {
	v, err := document.FromGo(data)
	if err != nil {
		return document.Value{}, &document.Error{Origin: origin, Err: err}
	}
	if v.Kind() != document.KindString {
		v = v.Spelled(text)
	}
	return v.At(origin), nil
}

// lines finds line and column of byte offsets.
type lines struct{ starts []int }

func newLines(data []byte) lines {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return lines{starts}
}

func (l lines) origin(file string, offset int) document.Origin {
	line := sort.SearchInts(l.starts, offset+1)
	return document.Origin{File: file, Line: line, Column: offset - l.starts[line-1] + 1}
}
