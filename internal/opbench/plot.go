package opbench

import (
	"fmt"
	"image/color"
	"slices"

	"github.com/primus-fl/primus/internal/chart"
	"github.com/primus-fl/primus/internal/plaintext"
)

// barColors tell impls apart, also in shades of grey.
func barColors() []color.Color {
	return []color.Color{
		color.RGBA{0x1f, 0x5f, 0xa8, 0xff}, color.RGBA{0xd9, 0x5f, 0x0e, 0xff}, color.RGBA{0x7f, 0xbf, 0x7b, 0xff},
		color.RGBA{0x5e, 0x3c, 0x99, 0xff}, color.RGBA{0xb0, 0xb0, 0xb0, 0xff},
	}
}

// Plot returns a PNG of at least one result, with a group of bars for each case and a bar for each
// impl: GFLOP/s if a case counts operations, else GB/s.
func Plot(rows []Figures) ([]byte, error) {
	var cases, impls []string
	unit := "GB/s"
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, r := range rows {
		cases = add(cases, caseName(r))
		impls = add(impls, r.Impl)
		if r.GFLOPS > 0 {
			unit = "GFLOP/s"
		}
	}
	slices.Reverse(cases) // the first belongs on top
	// A bar is 1 high, and a bar's height separates the groups.
	group := float64(len(impls) + 1)
	c := chart.Chart{
		Title: plaintext.Quantity(rows[0].Threads, "thread", "threads"), Width: 720, Height: max(float64(len(cases))*group*11+86, 180),
		X: chart.Axis{Label: unit, Grid: true},
		Y: chart.Axis{Max: float64(len(cases)) * group},
	}
	for i, name := range cases {
		c.Y.Ticks = append(c.Y.Ticks, chart.Tick{Value: (float64(i) + 0.5) * group, Label: name})
	}
	for i, impl := range impls {
		bars := chart.Bars{Name: impl, Color: barColors()[i%len(barColors())], Thickness: 1}
		for _, r := range rows {
			if r.Impl != impl {
				continue
			}
			v := r.GBPerS
			if unit == "GFLOP/s" {
				v = r.GFLOPS
			}
			at := float64(slices.Index(cases, caseName(r)))
			bars.Y = append(bars.Y, (at+1)*group-1-float64(i))
			bars.Values = append(bars.Values, v)
			c.X.Max = max(c.X.Max, v)
		}
		c.Series = append(c.Series, bars)
	}
	c.X.Max = max(1.35*c.X.Max, 1e-3) // room for the legend
	c.X.Ticks = chart.Ticks(0, c.X.Max, 10, false)
	return c.PNG()
}

func caseName(r Figures) string { return fmt.Sprintf("%s %s %v", r.Op, r.Shape, r.DType) }
