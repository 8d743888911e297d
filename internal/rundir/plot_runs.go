package rundir

import (
	"fmt"
	"image/color"

	"github.com/primus-fl/primus/internal/chart"
)

// Losses is the curve of a run.
type Losses struct {
	Name    string // as the title or the legend shows it
	Unit    string // of the losses; "" is left out
	Records []Record
}

// palette has a colour for each run of a plot.
var palette = []color.RGBA{
	{0x1f, 0x5f, 0xa8, 0xff}, {0xd9, 0x5f, 0x0e, 0xff}, {0x2b, 0x8a, 0x3e, 0xff}, {0x8e, 0x44, 0xad, 0xff}, {0xc0, 0x39, 0x2b, 0xff},
	{0x16, 0x8a, 0x8a, 0xff}, {0x7f, 0x6a, 0x1c, 0xff}, {0xc2, 0x3d, 0x83, 0xff}, {0x55, 0x55, 0x55, 0xff}, {0x5d, 0x8a, 0xd6, 0xff},
}

// PlotRuns returns a PNG with the losses of several runs over one of Horizontals: each in a colour
// of its own, the training loss as a line, averaged as in PlotLoss if there are enough steps, and
// validation losses as dots, with a ring for the evaluation at the end. The axis has the unit if
// all runs have the same. What PlotLoss leaves out is left out here. It is an error if a run has no
// loss, or if there are more runs than colours.
func PlotRuns(title, over string, runs []Losses) ([]byte, error) {
	if len(runs) == 0 || len(runs) > len(palette) {
		return nil, fmt.Errorf("rundir: plot: given %d runs, want 1 to %d", len(runs), len(palette))
	}
	var lines []chart.Line
	var markers []chart.Marker
	unit := runs[0].Unit
	for i, r := range runs {
		if r.Unit != unit {
			unit = ""
		}
		l := curves(r.Records, over)
		if l.empty() {
			return nil, fmt.Errorf("rundir: plot: %s has no finite loss of a step, want at least one", r.Name)
		}
		train, valid := thin(l.train, maxPoints), l.valid
		markers = append(markers, l.markers(r.Name+", ", palette[i], palette[i])...)
		if len(train) >= minSmooth {
			train = smooth(train, smoothingOf(train))
		}
		lines = append(lines, chart.Line{Name: r.Name, Color: palette[i], Width: 1.8, Marks: len(train) < 2, Points: train})
		if len(valid) > 0 {
			lines = append(lines, chart.Line{Name: r.Name + ", validation", Color: palette[i], Width: 0.9, Marks: true, Points: thin(valid, maxMarks)})
		}
	}
	return plot(chart.Chart{Title: title, Width: 864, Height: 480}, unit, lines, markers, func(x *chart.Axis) {
		if over != "step" {
			x.Label = map[string]string{"tokens": "tokens", "time": "time of steps in hours"}[over]
			x.Ticks = chart.Ticks(x.Min, x.Max, 8, false)
			for i, t := range x.Ticks {
				if over == "tokens" {
					x.Ticks[i].Label = short(t.Value)
				}
			}
		}
	})
}
