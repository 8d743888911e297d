package opencl

import (
	"fmt"

	"github.com/primus-fl/primus/device/opencl"
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

// String returns the size of what is computed at a time, which tells the shapes of a list apart.
func (s shape) String() string {
	if s.panels() {
		return fmt.Sprintf("panels of %d×%d", s.mr, s.columns())
	}
	return fmt.Sprintf("tiles of %d×%d, %d×%d each", s.tm, s.tn, s.tm/s.wy, s.tn/s.wx)
}

func (s shape) options() []string {
	if s.panels() {
		return []string{
			define("W", s.width), define("NV", s.nv), define("MR", s.mr),
			define("ROWS", s.rows), define("GROUP", s.group),
		}
	}
	return []string{
		define("TM", s.tm), define("TN", s.tn), define("WX", s.wx), define("WY", s.wy), define("DEPTH", s.depth),
	}
}

// runsOn reports whether a device has the work-group and the local memory of a shape.
func (s shape) runsOn(info opencl.Info) bool {
	local := 4 * s.depth * (s.tm + s.tn + 2)
	return s.wx*s.wy <= info.MaxWorkGroup && uint64(local) <= info.LocalMemory
}

// panelsOf returns a shape for a processor, whose registers hold mr×nv vectors of sums.
func panelsOf(width, nv, mr int) shape {
	return shape{width: width, nv: nv, mr: mr, rows: max(64/mr, 1) * mr, group: 1}
}

// tilesOf returns a shape for devices with local memory, whose work-items each compute some rows
// and columns of a tile.
func tilesOf(tm, tn, rows, columns, depth int) shape {
	return shape{tm: tm, tn: tn, wx: tn / columns, wy: tm / rows, depth: depth}
}

// The shapes that are measured, the first of which is taken without measurements.
var (
	panels4  = []shape{panelsOf(4, 2, 4), panelsOf(4, 2, 6), panelsOf(4, 4, 4)}
	panels8  = []shape{panelsOf(8, 2, 6), panelsOf(8, 3, 4), panelsOf(8, 1, 12)}
	panels16 = []shape{panelsOf(16, 2, 8), panelsOf(16, 3, 8), panelsOf(16, 2, 12)}

	largeTiles = []shape{tilesOf(64, 64, 4, 4, 16), tilesOf(64, 64, 8, 8, 16), tilesOf(128, 64, 8, 4, 16), tilesOf(128, 128, 8, 8, 8)}
	smallTiles = []shape{tilesOf(32, 32, 4, 4, 16), tilesOf(32, 32, 2, 2, 16), tilesOf(16, 64, 2, 4, 16)}

	// leastTiles is for devices that can run none of these.
	leastTiles = tilesOf(8, 8, 2, 2, 8)
)

// class is a kind of products for which one shape is chosen.
type class string

const (
	anyProduct   class = "products"
	largeProduct class = "large products"
	smallProduct class = "small products"
)

// classOf returns the class of a product of m×n elements, and its shapes that the device can run:
// at least one.
func classOf(info opencl.Info, m, n int) (class, []shape) {
	if info.Kind == "cpu" {
		switch {
		case info.VectorF32 >= 16:
			return anyProduct, panels16
		case info.VectorF32 >= 8:
			return anyProduct, panels8
		default:
			return anyProduct, panels4
		}
	}
	name, list := largeProduct, largeTiles
	if m*n < info.ComputeUnits*64*64 {
		name, list = smallProduct, smallTiles
	}
	var fit []shape
	for _, s := range list {
		if s.runsOn(info) {
			fit = append(fit, s)
		}
	}
	if fit == nil {
		return smallProduct, []shape{leastTiles}
	}
	return name, fit
}
