package tokenizer

import (
	"encoding/json"
	"fmt"
)

// readNormalizer returns the normalizer that an object describes.
func readNormalizer(raw json.RawMessage) (Normalizer, error) {
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var s struct {
			Type        string            `json:"type"`
			Normalizers []json.RawMessage `json:"normalizers"`
		}
		if err := strict(raw, &s); err != nil {
			return nil, err
		}
		return readSequence(s.Normalizers)
	case "Prepend":
		var p struct {
			Type    string `json:"type"`
			Prepend string `json:"prepend"`
		}
		err := strict(raw, &p)
		return Prepend(p.Prepend), err
	case "Replace":
		what, with, err := readReplace(raw)
		return Replace(what, with), err
	case "Strip":
		var s struct {
			Type  string `json:"type"`
			Left  bool   `json:"strip_left"`
			Right bool   `json:"strip_right"`
		}
		err := strict(raw, &s)
		return Strip(s.Left, s.Right), err
	case "Lowercase":
		return Lower, nil
	case "StripAccents":
		return StripMarks, nil
	case "Precompiled":
		var p struct {
			Type string `json:"type"`
			Map  []byte `json:"precompiled_charsmap"`
		}
		if err := strict(raw, &p); err != nil {
			return nil, err
		}
		return Precompiled(p.Map)
	}
	if n, ok := Form(kind); ok {
		return n, nil
	}
	return nil, &UnsupportedError{What: fmt.Sprintf("type %q", kind), Supported: []string{
		"NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Strip", "Lowercase", "StripAccents", "Precompiled", "Sequence",
	}}
}

// readSequence returns the normalizer that applies others one after the other.
func readSequence(raws []json.RawMessage) (Normalizer, error) {
	var steps []Normalizer
	for i, raw := range raws {
		n, err := readNormalizer(raw)
		if err != nil {
			return nil, fmt.Errorf("normalizers[%d]: %w", i, err)
		}
		steps = append(steps, n)
	}
	return Sequence(steps), nil
}

// readReplace returns what a Replace replaces, and with what.
func readReplace(raw json.RawMessage) (what, with string, err error) {
	var r struct {
		Type    string `json:"type"`
		Pattern text   `json:"pattern"`
		Content string `json:"content"`
	}
	if err := strict(raw, &r); err != nil {
		return "", "", err
	}
	what, err = r.Pattern.literal()
	return what, r.Content, err
}
