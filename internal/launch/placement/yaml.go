package placement

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// object is a mapping of a manifest: keys, each followed by its value, which is a text, a number, a
// bool, an object or a list of these. A value that is nil is left out.
type object []any

// writeObject writes a mapping as YAML. Package document renders experiments, in which it escapes
// what looks like a substitution; Kubernetes would take that for text.
func writeObject(b *strings.Builder, indent string, o object) {
	for i := 0; i+1 < len(o); i += 2 {
		if o[i+1] != nil {
			fmt.Fprintf(b, "%s%s:", indent, o[i])
			writeValue(b, indent, o[i+1])
		}
	}
}

// writeValue writes what follows a key.
func writeValue(b *strings.Builder, indent string, v any) {
	switch v := v.(type) {
	case object:
		b.WriteString("\n")
		writeObject(b, indent+"  ", v)
	case []any:
		b.WriteString("\n")
		for _, item := range v {
			var text strings.Builder
			if o, ok := item.(object); ok {
				writeObject(&text, indent+"    ", o)
			} else {
				writeValue(&text, "", item)
			}
			b.WriteString(indent + "  - " + strings.TrimLeft(text.String(), " "))
		}
	case string:
		if blockText(v) {
			b.WriteString(" |\n")
			for line := range strings.Lines(v) {
				b.WriteString(strings.TrimRight(indent+"  "+line, " "))
			}
			return
		}
		b.WriteString(" " + scalar(v) + "\n")
	default:
		fmt.Fprintf(b, " %v\n", v)
	}
}

// plainText matches texts that YAML reads as they are.
var plainText = regexp.MustCompile(`^(-?-?[A-Za-z/][A-Za-z0-9_./=,-]*(:[A-Za-z0-9/_.-]+)*)$`)

// words are plain texts that YAML reads as something else.
var words = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)

// scalar returns a text of one line. JSON's notation is also YAML's.
func scalar(text string) string {
	if plainText.MatchString(text) && !words.MatchString(text) {
		return text
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can be encoded
	return strings.TrimSpace(b.String())
}

// blockText reports whether a text of several lines can be written as a block.
func blockText(text string) bool {
	if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f) }) < 0 && !strings.Contains(text, " \n")
}
