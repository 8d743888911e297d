package command

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// barHeight is the thickness of a bar in points.
const barHeight vg.Length = 11

// barColors tell impls apart, also in shades of grey.
func barColors() []color.Color {
	return []color.Color{
		color.RGBA{0x1f, 0x5f, 0xa8, 0xff}, color.RGBA{0xd9, 0x5f, 0x0e, 0xff}, color.RGBA{0x7f, 0xbf, 0x7b, 0xff},
		color.RGBA{0x5e, 0x3c, 0x99, 0xff}, color.RGBA{0xb0, 0xb0, 0xb0, 0xff},
	}
}

// plotBenchmark writes a PNG with a group of bars for each case and a bar for each impl: GFLOP/s where the case counts
// operations, else GB/s.
func plotBenchmark(file string, rows []implBenchmark) error {
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
	p := plot.New()
	p.Title.Text = plural(rows[0].Threads, "thread")
	p.X.Label.Text = unit
	p.X.Min = 0
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	for i, impl := range impls {
		values := make(plotter.Values, len(cases))
		for _, r := range rows {
			if r.Impl != impl {
				continue
			}
			v := r.GBPerS
			if unit == "GFLOP/s" {
				v = r.GFLOPS
			}
			values[slices.Index(cases, caseName(r))] = v
		}
		bars, err := plotter.NewBarChart(values, barHeight)
		if err != nil {
			return fmt.Errorf("plot %s: %w", impl, err)
		}
		bars.Horizontal = true
		bars.Color = barColors()[i%len(barColors())]
		bars.LineStyle.Width = 0
		bars.Offset = barHeight * vg.Length(float64(len(impls)-1)/2-float64(i))
		p.Add(bars)
		p.Legend.Add(impl, bars)
	}
	p.NominalY(cases...)
	p.Y.Min, p.Y.Max = -0.7, float64(len(cases))-0.3
	p.X.Max *= 1.35 // room for the legend
	height := vg.Length(len(cases))*(vg.Length(len(impls))+1)*barHeight + 1.2*vg.Inch
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(10*vg.Inch, max(height, 2.5*vg.Inch)), vgimg.UseBackgroundColor(color.White))}
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(8), -vg.Points(8), vg.Points(8), -vg.Points(8)))
	var png bytes.Buffer
	if _, err := canvas.WriteTo(&png); err != nil {
		return fmt.Errorf("encode the plot: %w", err)
	}
	if err := os.WriteFile(file, png.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

func caseName(r implBenchmark) string { return fmt.Sprintf("%s %s %v", r.Op, r.Shape, r.DType) }
