package service

import (
	"context"

	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/runtime/patch"
)

// PatchSource is where a patch comes from.
type PatchSource string

const (
	FromProgram  PatchSource = "program"  // it is one of this program
	FromCheckout PatchSource = "checkout" // it is one of the checkout of --repo
)

// servedPatch is a patch in the answer of the service.
type servedPatch struct {
	Source PatchSource `json:"source"`
	pyreader.Record
}

// ServedPatches are what the service shows beside the patches of this program.
type ServedPatches struct {
	Records []pyreader.Record // of the checkout
	Plan    any               // nil without an experiment
}

// lists returns what the service answers: the patches of the checkout with those of a set, and the
// plan if there is one.
func (p ServedPatches) lists(own *patch.Set) (patches, plan serve.Lister) {
	all := make([]servedPatch, 0, len(p.Records))
	for _, r := range p.Records {
		all = append(all, servedPatch{FromCheckout, r})
	}
	for _, r := range pyreader.Own(own) {
		all = append(all, servedPatch{FromProgram, r})
	}
	patches = func(context.Context) (any, error) { return all, nil }
	if p.Plan != nil {
		plan = func(context.Context) (any, error) { return p.Plan, nil }
	}
	return patches, plan
}
