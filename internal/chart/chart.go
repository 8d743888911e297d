package chart

import (
	"bytes"
	"fmt"
	"image/color"
)

// A Chart is one picture. Lengths are in points (1/72 inch).
type Chart struct {
	Title         string
	Width, Height float64
	X, Y          Axis
	Series        []Series // later ones are drawn over earlier ones
}

// An Axis maps the values from Min to Max, which must be less than Max.
type Axis struct {
	Label    string
	Min, Max float64
	Ticks    []Tick
	Grid     bool // draw a faint line at each tick
}

// A Tick is a labelled value of an axis. The label of one of X may have several lines.
type Tick struct {
	Value float64
	Label string
}

// Series is data of a chart: Line, Marker, Bars or Boxes.
type Series interface {
	name() string
	draw(c *canvas)
	// drawKey draws the sample of the series for the legend between x0 and x1, centred on y.
	drawKey(c *canvas, x0, x1, y float64)
}

// PNG returns the encoded picture, at 110 pixels per inch.
func (c Chart) PNG() ([]byte, error) {
	if !(c.X.Min < c.X.Max) || !(c.Y.Min < c.Y.Max) {
		return nil, fmt.Errorf("chart: the axes go from %g to %g and from %g to %g, want Min less than Max",
			c.X.Min, c.X.Max, c.Y.Min, c.Y.Max)
	}
	v, err := newCanvas(c)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	v.drawFrame(c)
	for _, s := range c.Series {
		s.draw(v)
	}
	v.drawLegend(c.Series)
	var png bytes.Buffer
	if err := v.gg.EncodePNG(&png); err != nil {
		return nil, fmt.Errorf("chart: encode the picture: %w", err)
	}
	return png.Bytes(), nil
}

// A Line connects points in their order. With Marks each point is a dot as well.
type Line struct {
	Name   string
	Color  color.Color
	Width  float64 // in points
	Marks  bool
	Points []Point
}

// A Point is a position in data coordinates.
type Point struct{ X, Y float64 }

// markRadius is the size of the dots of a line in points.
const markRadius = 3

var _ Series = Line{}

func (l Line) name() string { return l.Name }

func (l Line) draw(c *canvas) {
	for _, p := range l.Points {
		c.gg.LineTo(c.x(p.X), c.y(p.Y))
	}
	c.stroke(l.Color, l.Width)
	if !l.Marks {
		return
	}
	for _, p := range l.Points {
		c.gg.DrawCircle(c.x(p.X), c.y(p.Y), pixels(markRadius))
	}
	c.fill(l.Color)
}

func (l Line) drawKey(c *canvas, x0, x1, y float64) {
	c.gg.DrawLine(x0, y, x1, y)
	c.stroke(l.Color, l.Width)
	if l.Marks {
		c.gg.DrawCircle((x0+x1)/2, y, pixels(markRadius))
		c.fill(l.Color)
	}
}

// A Marker is a ring at a point that no line joins.
type Marker struct {
	Name  string
	Color color.Color
	At    Point
}

var _ Series = Marker{}

func (m Marker) name() string { return m.Name }

func (m Marker) draw(c *canvas) { m.ring(c, c.x(m.At.X), c.y(m.At.Y)) }

func (m Marker) drawKey(c *canvas, x0, x1, y float64) { m.ring(c, (x0+x1)/2, y) }

func (m Marker) ring(c *canvas, x, y float64) {
	c.gg.DrawCircle(x, y, pixels(markRadius+1.5))
	c.stroke(m.Color, 2)
}

// Bars are horizontal bars from 0 to each value.
type Bars struct {
	Name      string
	Color     color.Color
	Y         []float64 // the centre of each bar
	Values    []float64
	Thickness float64 // in the unit of Y
}

var _ Series = Bars{}

func (b Bars) name() string { return b.Name }

func (b Bars) draw(c *canvas) {
	for i, v := range b.Values {
		top, bottom := c.y(b.Y[i]+b.Thickness/2), c.y(b.Y[i]-b.Thickness/2)
		c.gg.DrawRectangle(c.x(0), top, c.x(v)-c.x(0), bottom-top)
	}
	c.fill(b.Color)
}

func (b Bars) drawKey(c *canvas, x0, x1, y float64) {
	half := pixels(4.5)
	c.gg.DrawRectangle(x0, y-half, x1-x0, 2*half)
	c.fill(b.Color)
}

// Boxes are rectangles.
type Boxes struct {
	Name  string
	Color color.Color // of the sample in the legend
	Boxes []Box
}

// A Box is a rectangle in data coordinates.
type Box struct {
	X0, X1, Y0, Y1 float64
	Color          color.Color
}

var _ Series = Boxes{}

func (b Boxes) name() string { return b.Name }

func (b Boxes) draw(c *canvas) {
	for _, box := range b.Boxes {
		c.gg.DrawRectangle(c.x(box.X0), c.y(box.Y1), c.x(box.X1)-c.x(box.X0), c.y(box.Y0)-c.y(box.Y1))
		c.fill(box.Color)
	}
}

func (b Boxes) drawKey(c *canvas, x0, x1, y float64) { Bars{Color: b.Color}.drawKey(c, x0, x1, y) }
