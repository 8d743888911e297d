//go:build !unix

package opstest

import "github.com/primus-fl/primus/tensor/tensortest"

// pageSpan is how much memory beside an operand is guarded.
const pageSpan = 0

// pages guards nothing on this system; the bands around operands show what is written there.
type pages struct{ end bool }

func (p *pages) placement() tensortest.Placement { return tensortest.Placement{} }

func (p *pages) release() error { return nil }
