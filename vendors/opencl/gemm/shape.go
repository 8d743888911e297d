package gemm

import (
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/vendors/opencl/internal/kernel"
)

// shape says how a product is cut. With a width it is cut into panels: a work-item computes rows
// rows of nv vectors of width columns, mr rows at a time, and group work-items make a group.
// Without, it is cut into tiles of tm×tn elements, each computed by wx×wy work-items, depth steps
// of the inner axis at a time.
type shape struct {
	width, nv, mr, rows, group int
	tm, tn, wx, wy, depth      int
}

func (s shape) panels() bool { return s.width > 0 }

// columns returns the columns of a panel.
func (s shape) columns() int { return s.width * s.nv }

func (s shape) options() []string {
	if s.panels() {
		return []string{
			kernel.Define("W", s.width), kernel.Define("NV", s.nv), kernel.Define("MR", s.mr),
			kernel.Define("ROWS", s.rows), kernel.Define("GROUP", s.group),
		}
	}
	return []string{
		kernel.Define("TM", s.tm), kernel.Define("TN", s.tn), kernel.Define("WX", s.wx), kernel.Define("WY", s.wy), kernel.Define("DEPTH", s.depth),
	}
}

// The shapes for processors, by the width of their vectors: registers hold mr×nv vectors of sums.
// Those for other devices are tiles, for large and for small products.
var (
	panels16 = shape{width: 16, nv: 2, mr: 8, rows: 64, group: 1}
	panels8  = shape{width: 8, nv: 2, mr: 6, rows: 48, group: 1}
	panels4  = shape{width: 4, nv: 2, mr: 4, rows: 32, group: 1}
	tiles64  = shape{tm: 64, tn: 64, wx: 16, wy: 16, depth: 16}
	tiles32  = shape{tm: 32, tn: 32, wx: 8, wy: 8, depth: 16}
)

// shapeFor returns the shape for a product of m×n elements.
func shapeFor(d *opencl.Device, m, n int) shape {
	info := d.Info()
	if info.Kind == "cpu" {
		switch {
		case info.VectorF32 >= 16:
			return panels16
		case info.VectorF32 >= 8:
			return panels8
		default:
			return panels4
		}
	}
	if m*n >= info.ComputeUnits*tiles64.tm*tiles64.tn && info.MaxWorkGroup >= tiles64.wx*tiles64.wy {
		return tiles64
	}
	return tiles32
}
