package policyfile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
)

// Parse parses the content of a policy file. The error joins one *document.Error for each fault;
// with an error there is no layer, as when ctx has ended.
func Parse(ctx context.Context, file string, data []byte) (*Layer, error) {
	root, _, err := document.Parse(ctx, formats.YAML{}, file, data)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	r := &reader{once: true}
	var entries []Entry
	if _, ok := root.Map(); ok {
		entries = r.entries(root, "")
	} else {
		r.fail(root.Origin(), "", "given %s, want %s", root.Describe(), wantDocument())
	}
	l, err := r.layer(entries)
	if err != nil {
		return nil, err
	}
	l.Origin, l.Text = file, string(data)
	return l, nil
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
// *document.Error for each fault; with an error there is no layer.
func FromEntries(entries []Entry) (*Layer, error) { return (&reader{}).layer(entries) }

// layer reads the entries of a whole policy.
func (r *reader) layer(entries []Entry) (*Layer, error) {
	r.policy = oppolicy.Default()
	for _, e := range r.read(entries, "", r.keyReaders()) {
		source := e.Value.KeyOrigin().Source()
		if field := oppolicy.Field(e.Key); slices.Contains(pluginFields, field) {
			r.plugins.setSource(field, source)
		} else {
			r.policy.SetSource(field, source)
		}
	}
	if err := r.policy.Contradiction(); err != nil {
		r.faults = append(r.faults, err)
	}
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return &Layer{opmanager.PolicyLayer{Policy: r.policy}, r.plugins}, nil
}
