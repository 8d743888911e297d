package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/tensor"
)

// Info describes one tensor of a file.
type Info struct {
	DType tensor.DType
	Shape tensor.Shape
	begin int64 // in the data part
	end   int64
}

// String returns dtype and shape in the form "f32 [2 3]".
func (i Info) String() string { return fmt.Sprintf("%v %v", i.DType, i.Shape) }

// Size returns the number of bytes of the tensor's data.
func (i Info) Size() int64 { return i.end - i.begin }

// header is what the JSON of a file says, checked as far as it can be without the size of the file.
type header struct {
	tensors  map[string]Info
	metadata map[string]string
	size     int64 // bytes of the data part
}

// headerParser walks the tokens of a header. encoding/json alone would accept
// duplicate keys, fractions as offsets and bytes after the object.
type headerParser struct {
	file  string
	dec   *json.Decoder
	meter *meter.Meter
}

// maxTokens bounds the tokens of a header. A tensor has about fifteen.
const maxTokens = 1 << 23

func parseHeader(file string, text []byte, m *meter.Meter) (*header, error) {
	p := &headerParser{file: file, dec: json.NewDecoder(m.Reader(bytes.NewReader(text))), meter: m}
	p.dec.UseNumber()
	if !utf8.Valid(text) {
		return nil, p.fail("", "a header with invalid UTF-8", "JSON in UTF-8")
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, p.fail("", "a header that does not begin with {", "a JSON object")
	}
	h := &header{tensors: make(map[string]Info)}
	err := p.object("", func(key string) error {
		if key == metadataKey {
			if h.metadata != nil {
				return p.fail("", "the key "+metadataKey+" twice", "it at most once")
			}
			return p.metadata(h)
		}
		if _, twice := h.tensors[key]; twice {
			return p.fail(key, "the name twice", "unique names")
		}
		info, err := p.tensor(key)
		h.tensors[key] = info
		return err
	})
	if err != nil {
		return nil, err
	}
	if rest := bytes.Trim(text[p.dec.InputOffset():], " "); len(rest) > 0 {
		return nil, p.fail("", fmt.Sprintf("%d bytes after the JSON object", len(rest)), "spaces only")
	}
	return h, p.checkRanges(h)
}

func (p *headerParser) fail(name, got, want string) error {
	return &FormatError{File: p.file, Tensor: name, Got: got, Want: want}
}

// token returns the next token; the end of the text is an error of the format.
func (p *headerParser) token(name string) (json.Token, error) {
	if err := p.meter.Spend(1); err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", p.file, err)
	}
	tok, err := p.dec.Token()
	if p.meter.Err() != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", p.file, p.meter.Err())
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, p.fail(name, "a header that is not JSON: "+err.Error(), "a JSON object")
	}
	return tok, nil
}

func (p *headerParser) delim(name string, want json.Delim, what string) error {
	tok, err := p.token(name)
	if err != nil {
		return err
	}
	if tok != want {
		return p.fail(name, fmt.Sprintf("%v in the place of %s", tok, what), fmt.Sprintf("%v", want))
	}
	return nil
}

// object calls field with each key of an object, which reads the value.
func (p *headerParser) object(name string, field func(key string) error) error {
	if err := p.delim(name, '{', "an object"); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.text(name)
		if err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
	}
	return p.delim(name, '}', "the end of an object")
}

func (p *headerParser) text(name string) (string, error) {
	tok, err := p.token(name)
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", p.fail(name, fmt.Sprintf("%v", tok), "a string")
	}
	return s, nil
}

func (p *headerParser) metadata(h *header) error {
	h.metadata = make(map[string]string)
	return p.object("", func(key string) error {
		if _, twice := h.metadata[key]; twice {
			return p.fail("", fmt.Sprintf("the metadata key %q twice", key), "unique keys")
		}
		value, err := p.text("")
		h.metadata[key] = value
		return err
	})
}

func (p *headerParser) tensor(name string) (Info, error) {
	info := Info{Shape: tensor.Shape{}}
	seen := make(map[string]bool, 3)
	err := p.object(name, func(key string) error {
		if seen[key] {
			return p.fail(name, "the key "+strconv.Quote(key)+" twice", "unique keys")
		}
		seen[key] = true
		switch key {
		case "dtype":
			return p.dtype(name, &info)
		case "shape":
			return p.numbers(name, "shape", func(n int64) error {
				if int64(int(n)) != n {
					return p.fail(name, fmt.Sprintf("an axis of %d", n), "one that fits in an int")
				}
				info.Shape = append(info.Shape, int(n))
				return nil
			})
		case "data_offsets":
			return p.offsets(name, &info)
		default:
			return p.fail(name, "the key "+strconv.Quote(key), "dtype, shape and data_offsets")
		}
	})
	if err != nil {
		return info, err
	}
	if len(seen) != 3 {
		return info, p.fail(name, fmt.Sprintf("%d of the keys dtype, shape and data_offsets", len(seen)), "all three")
	}
	size, ok := byteSize(info.DType, info.Shape)
	if !ok {
		return info, p.fail(name, fmt.Sprintf("shape %v", info.Shape), "a product that fits in 63 bits")
	}
	if size != info.Size() {
		return info, p.fail(name, fmt.Sprintf("data_offsets [%d, %d]: %d bytes", info.begin, info.end, info.Size()), fmt.Sprintf("%d bytes for %v", size, info))
	}
	return info, nil
}

func (p *headerParser) dtype(name string, info *Info) error {
	text, err := p.text(name)
	if err != nil {
		return err
	}
	d, ok := dtypeOf(text)
	if !ok {
		return p.fail(name, fmt.Sprintf("dtype %q", text), "one of "+knownDTypes())
	}
	info.DType = d
	return nil
}

func (p *headerParser) offsets(name string, info *Info) error {
	var ends []int64
	err := p.numbers(name, "data_offsets", func(n int64) error {
		ends = append(ends, n)
		return nil
	})
	if err != nil {
		return err
	}
	if len(ends) != 2 || ends[0] > ends[1] {
		return p.fail(name, fmt.Sprintf("data_offsets %v", ends), "[begin, end] with begin <= end")
	}
	info.begin, info.end = ends[0], ends[1]
	return nil
}

// numbers reads an array of integers from 0 to 2⁶³−1.
func (p *headerParser) numbers(name, key string, each func(int64) error) error {
	if err := p.delim(name, '[', key); err != nil {
		return err
	}
	for p.dec.More() {
		tok, err := p.token(name)
		if err != nil {
			return err
		}
		number, ok := tok.(json.Number)
		if !ok {
			return p.fail(name, fmt.Sprintf("%v in %s", tok, key), "an integer")
		}
		n, err := strconv.ParseUint(number.String(), 10, 63)
		if err != nil {
			return p.fail(name, fmt.Sprintf("%v in %s", number, key), "an integer from 0 to 2^63-1")
		}
		if err := each(int64(n)); err != nil {
			return err
		}
	}
	return p.delim(name, ']', "the end of "+key)
}

// checkRanges finds overlap and holes, and sets the size of the data part.
func (p *headerParser) checkRanges(h *header) error {
	names := make([]string, 0, len(h.tensors))
	for name := range h.tensors {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := h.tensors[a], h.tensors[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	previous := ""
	for _, name := range names {
		info := h.tensors[name]
		switch {
		case info.begin < h.size:
			return p.fail(name, fmt.Sprintf("data_offsets [%d, %d]", info.begin, info.end), fmt.Sprintf("no overlap with tensor %q, which ends at %d", previous, h.size))
		case info.begin > h.size:
			return p.fail(name, fmt.Sprintf("data_offsets [%d, %d]", info.begin, info.end), fmt.Sprintf("no hole: the tensor before it ends at %d", h.size))
		}
		h.size, previous = info.end, name
	}
	return nil
}
