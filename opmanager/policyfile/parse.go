package policyfile

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Parse parses the content of a policy file. The error joins one *document.Error for each fault;
// with an error there is no overlay.
func Parse(file string, data []byte) (*Overlay, error) {
	root, _, err := document.Parse(formats.YAML{}, file, data)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	r := &reader{once: true}
	var entries []Entry
	if _, ok := root.Map(); ok {
		entries = r.entries(root, "")
	} else {
		r.fail(root.Origin(), "", "given %s, expected %s", root.Describe(), wantDocument())
	}
	o, err := r.overlay(entries)
	if err != nil {
		return nil, err
	}
	o.file, o.content = file, sha256.Sum256(data)
	return o, nil
}

// Entry is a key of a policy with its value.
type Entry struct {
	// Key is one of Keys.
	Key string
	// Name is what messages call the key.
	Name string
	// Value knows where it and its key were written.
	Value document.Value
}

// FromEntries reads a policy from entries that any document gave. The error joins one
// *document.Error for each fault; with an error there is no overlay.
func FromEntries(entries []Entry) (*Overlay, error) { return (&reader{}).overlay(entries) }

// overlay reads the entries of a whole policy.
func (r *reader) overlay(entries []Entry) (*Overlay, error) {
	r.policy.Sources = map[oppolicy.Field]string{}
	for _, e := range r.read(entries, "", r.keyReaders()) {
		r.policy.Sources[oppolicy.Field(e.Key)] = e.Value.KeyOrigin().Source()
	}
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return &Overlay{values: r.policy, plugins: r.plugins}, nil
}
