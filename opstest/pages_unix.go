//go:build unix

package opstest

import (
	"errors"
	"os"
	"syscall"

	"github.com/primus-fl/primus/tensor/tensortest"
)

// pageSpan is how much memory beside an operand is guarded.
const pageSpan = 1 << 16

// pages gives each operand memory that ends, or begins, at a page that must not be touched.
type pages struct {
	end    bool // the guarded page is after the operand
	mapped [][]byte
	fault  error
}

func (p *pages) placement() tensortest.Placement {
	return tensortest.Placement{Memory: p.take, AtEnd: p.end, AtStart: !p.end}
}

func (p *pages) take(n int) []byte {
	page := os.Getpagesize()
	inner := (n + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, inner+2*pageSpan, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		p.mapped = append(p.mapped, all)
		err = syscall.Mprotect(all[pageSpan:pageSpan+inner], syscall.PROT_READ|syscall.PROT_WRITE)
	}
	if err != nil {
		p.fault = errors.Join(p.fault, err)
		return make([]byte, n)
	}
	if p.end {
		return all[pageSpan+inner-n : pageSpan+inner : pageSpan+inner]
	}
	return all[pageSpan : pageSpan+n : pageSpan+n]
}

func (p *pages) release() error {
	for _, m := range p.mapped {
		p.fault = errors.Join(p.fault, syscall.Munmap(m))
	}
	return p.fault
}
