package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/primus-fl/primus/document/internal/scalar"
)

var _ json.Marshaler = (*Map)(nil)

// MarshalJSON implements json.Marshaler. Keys keep their order and floats keep a point, so JSON
// values load back to equal ones. What JSON cannot hold (infinities, NaN, dates, bytes) is written
// as a string that spells it as in YAML.
func (m *Map) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := (Value{data: m}).appendJSON(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (v Value) appendJSON(b *bytes.Buffer) error {
	switch d := v.data.(type) {
	case *Map:
		b.WriteByte('{')
		first := true
		for key, value := range d.All() {
			if !first {
				b.WriteByte(',')
			}
			first = false
			if err := appendJSONString(b, key); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := value.appendJSON(b); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []Value:
		b.WriteByte('[')
		for i, item := range d {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := item.appendJSON(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case float64:
		if math.IsInf(d, 0) || math.IsNaN(d) {
			return appendJSONString(b, v.canonical())
		}
		b.WriteString(v.canonical())
	case string, scalar.Date, scalar.Time, []byte:
		return appendJSONString(b, v.canonical())
	default:
		b.WriteString(v.canonical())
	}
	return nil
}

func appendJSONString(b *bytes.Buffer, text string) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return fmt.Errorf("document: render %q: %w", text, err)
	}
	b.Truncate(b.Len() - 1)
	return nil
}
