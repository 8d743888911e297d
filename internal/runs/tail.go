package runs

import (
	"bytes"
	"sync"
)

// maxTail bounds the text that a Tail keeps and that is read from a log.
const maxTail = 64 << 10

// Tail is a writer that keeps the end of the text written to it. The zero value is ready to use.
type Tail struct {
	mu   sync.Mutex
	text []byte
	end  int64 // the number of bytes written
}

// Write keeps p. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end += int64(len(p))
	if t.text = append(t.text, p...); len(t.text) > 2*maxTail {
		t.text = append([]byte(nil), t.text[len(t.text)-maxTail:]...)
	}
	return len(p), nil
}

// Lines returns the last lines.
func (t *Tail) Lines(most int) []byte {
	text, _ := t.Since(most, 0)
	return text
}

// Since returns the last lines, or everything after a position unless that is 0, and the position
// of the end. Lines that are kept no longer are left out.
func (t *Tail) Since(most int, after int64) (text []byte, end int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = t.text[max(0, len(t.text)-maxTail):]
	switch missed := t.end - after; {
	case after == 0:
		text = lastLines(text, len(t.text) > maxTail, most)
	case missed <= 0:
		text = nil
	case missed <= int64(len(text)):
		text = text[int64(len(text))-missed:]
	default:
		text = lastLines(text, true, maxTail)
	}
	return bytes.Clone(text), t.end
}

// lastLines returns the last lines of a text. If the text was cut at its beginning, the first line
// is left out, since it may be incomplete.
func lastLines(text []byte, cut bool, most int) []byte {
	if i := bytes.IndexByte(text, '\n'); cut && i >= 0 {
		text = text[i+1:]
	}
	begin := len(text)
	for range most {
		begin = bytes.LastIndexByte(bytes.TrimSuffix(text[:begin], []byte("\n")), '\n') + 1
		if begin == 0 {
			break
		}
	}
	return text[begin:]
}
