package chart

import (
	"image/color"
	"strings"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// dpi is the number of pixels per inch.
const dpi = 110

// Lengths in points.
const (
	margin      = 8
	tickLength  = 6
	titleSize   = 14
	labelSize   = 12
	legendSize  = 11
	tickSize    = 10
	tickLine    = 13 // from a line of a label to the next
	legendInset = 10
	keyWidth    = 26
)

// pixels converts points.
func pixels(points float64) float64 { return points * dpi / 72 }

// canvas is the picture in the making. Its coordinates are pixels, with y downwards.
type canvas struct {
	gg                       *gg.Context
	faces                    map[float64]font.Face // by size in points
	left, right, top, bottom float64               // the rectangle that the axes span
	xAxis, yAxis             Axis
}

// newCanvas returns a white picture with its axes placed so that title, labels and ticks fit.
func newCanvas(c Chart) (*canvas, error) {
	v := &canvas{
		gg:    gg.NewContext(int(pixels(c.Width)+0.5), int(pixels(c.Height)+0.5)),
		faces: map[float64]font.Face{},
		xAxis: c.X, yAxis: c.Y,
	}
	v.gg.SetColor(color.White)
	v.gg.Clear()
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	for _, size := range []float64{titleSize, labelSize, legendSize, tickSize} {
		if v.faces[size], err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: dpi}); err != nil {
			return nil, err
		}
	}

	v.left = pixels(margin + tickLength + 4)
	if c.Y.Label != "" {
		v.left += pixels(labelSize + 6)
	}
	v.left += v.widest(tickSize, labels(c.Y.Ticks))
	v.right = float64(v.gg.Width()) - max(pixels(2*margin), v.widest(tickSize, strings.Split(strings.Join(labels(c.X.Ticks), "\n"), "\n"))/2+pixels(4))
	v.top = pixels(margin)
	if c.Title != "" {
		v.top += pixels(titleSize + 10)
	}
	v.bottom = float64(v.gg.Height()) - pixels(margin+tickLength+4+float64(lines(c.X.Ticks))*tickLine)
	if c.X.Label != "" {
		v.bottom -= pixels(labelSize + 4)
	}
	return v, nil
}

// lines returns the number of lines of the longest label.
func lines(ticks []Tick) int {
	most := 1
	for _, t := range ticks {
		most = max(most, 1+strings.Count(t.Label, "\n"))
	}
	return most
}

func labels(ticks []Tick) []string {
	texts := make([]string, len(ticks))
	for i, t := range ticks {
		texts[i] = t.Label
	}
	return texts
}

// widest returns the width of the longest of the texts.
func (v *canvas) widest(size float64, texts []string) float64 {
	v.gg.SetFontFace(v.faces[size])
	width := 0.0
	for _, s := range texts {
		w, _ := v.gg.MeasureString(s)
		width = max(width, w)
	}
	return width
}

func (v *canvas) x(value float64) float64 {
	return v.left + (value-v.xAxis.Min)/(v.xAxis.Max-v.xAxis.Min)*(v.right-v.left)
}

func (v *canvas) y(value float64) float64 {
	return v.bottom - (value-v.yAxis.Min)/(v.yAxis.Max-v.yAxis.Min)*(v.bottom-v.top)
}

// stroke draws the path and forgets it.
func (v *canvas) stroke(c color.Color, points float64) {
	v.gg.SetColor(c)
	v.gg.SetLineWidth(pixels(points))
	v.gg.Stroke()
}

// fill fills the path and forgets it.
func (v *canvas) fill(c color.Color) {
	v.gg.SetColor(c)
	v.gg.Fill()
}

// text draws s so that the fractions ax and ay of its width and height lie left of x and above y.
func (v *canvas) text(s string, size, x, y, ax, ay float64) {
	v.gg.SetFontFace(v.faces[size])
	v.gg.SetColor(color.Black)
	v.gg.DrawStringAnchored(s, x, y, ax, ay)
}

// drawFrame draws title, grid, axes and their labels.
func (v *canvas) drawFrame(c Chart) {
	axisColor, gridColor := color.Gray{0x70}, color.Gray{0xe6}
	middleX, middleY := (v.left+v.right)/2, (v.top+v.bottom)/2
	width, height := float64(v.gg.Width()), float64(v.gg.Height())
	v.text(c.Title, titleSize, width/2, pixels(margin), 0.5, 1)
	v.text(c.X.Label, labelSize, middleX, height-pixels(margin), 0.5, 0)
	v.gg.Push()
	v.gg.RotateAbout(gg.Radians(-90), pixels(margin), middleY)
	v.text(c.Y.Label, labelSize, pixels(margin), middleY, 0.5, 1)
	v.gg.Pop()

	tick := pixels(tickLength)
	for _, t := range c.X.Ticks {
		x := v.x(t.Value)
		if c.X.Grid {
			v.gg.DrawLine(x, v.top, x, v.bottom)
			v.stroke(gridColor, 0.6)
		}
		v.gg.DrawLine(x, v.bottom, x, v.bottom+tick)
		v.stroke(axisColor, 0.6)
		for i, line := range strings.Split(t.Label, "\n") {
			v.text(line, tickSize, x, v.bottom+tick+pixels(3+float64(i)*tickLine), 0.5, 1)
		}
	}
	for _, t := range c.Y.Ticks {
		y := v.y(t.Value)
		if c.Y.Grid {
			v.gg.DrawLine(v.left, y, v.right, y)
			v.stroke(gridColor, 0.6)
		}
		v.gg.DrawLine(v.left-tick, y, v.left, y)
		v.stroke(axisColor, 0.6)
		v.text(t.Label, tickSize, v.left-tick-pixels(4), y, 1, 0.35)
	}
	v.gg.MoveTo(v.left, v.top)
	v.gg.LineTo(v.left, v.bottom)
	v.gg.LineTo(v.right, v.bottom)
	v.stroke(axisColor, 0.6)
}

// drawLegend draws the name and a sample of each series in the upper right corner.
func (v *canvas) drawLegend(series []Series) {
	end := v.right - pixels(legendInset)
	start := end - pixels(keyWidth)
	y := v.top + pixels(legendInset)
	for _, s := range series {
		s.drawKey(v, start, end, y)
		v.text(s.name(), legendSize, start-pixels(4), y, 1, 0.35)
		y += pixels(legendSize + 4)
	}
}
