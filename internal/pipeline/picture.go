package pipeline

import (
	"fmt"
	"html"
	"image/color"
	"io"
	"strings"

	"github.com/primus-fl/primus/internal/chart"
)

// Drawn is a table with its simulation.
type Drawn struct {
	Table
	Simulation
}

// MaxDrawn is how many passes a picture has at most.
const MaxDrawn = 60_000

// title describes a table in a line.
func (d Drawn) title() string {
	chunks := ""
	if d.Chunks > 1 {
		chunks = fmt.Sprintf(", %d chunks", d.Chunks)
	}
	return fmt.Sprintf("%s: %d stages, %d micro batches%s; step time %.6g, bubble %.2f %%, peak activations %.4g",
		d.Name, d.Ranks, d.MicroBatches, chunks, d.StepTime, 100*d.Bubble, d.Peak())
}

// drawable returns the longest step time, or an error if there are too many passes for a picture.
func drawable(list []Drawn) (float64, error) {
	passes, longest := 0, 0.0
	for _, d := range list {
		for _, spans := range d.Spans {
			passes += len(spans)
		}
		longest = max(longest, d.StepTime)
	}
	if passes > MaxDrawn {
		return 0, fmt.Errorf("pipeline: given %d passes to draw, want at most %d: draw fewer schedules or micro batches", passes, MaxDrawn)
	}
	return longest, nil
}

// drawnKind is how the passes of a kind look.
type drawnKind struct {
	kind  Kind
	name  string
	color color.RGBA
}

// drawnKinds are colours that people with colour blindness can tell apart.
func drawnKinds() []drawnKind {
	return []drawnKind{
		{Forward, "F: forward", color.RGBA{0x44, 0x77, 0xaa, 0xff}},
		{BackwardInput, "B: gradient of the input", color.RGBA{0xee, 0x88, 0x33, 0xff}},
		{BackwardWeights, "W: gradients of weights", color.RGBA{0x22, 0x99, 0x77, 0xff}},
		{Backward, "BW: both gradients", color.RGBA{0xbb, 0x44, 0x55, 0xff}},
	}
}

// shade makes the colour of later chunks lighter.
func shade(c color.RGBA, chunk, chunks int) color.RGBA {
	if chunks == 1 {
		return c
	}
	part := 0.55 * float64(chunk) / float64(chunks-1)
	mix := func(v uint8) uint8 { return uint8(float64(v) + part*(255-float64(v)) + 0.5) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

// Lengths of SVG pictures in pixels.
const (
	pictureWidth = 1400
	labelWidth   = 80
	rowHeight    = 22
	titleHeight  = 30
	axisHeight   = 40
)

// WriteSVG draws tables over time, one row a stage, all on one scale.
func WriteSVG(w io.Writer, list []Drawn) error {
	longest, err := drawable(list)
	if err != nil {
		return err
	}
	height := titleHeight
	for _, d := range list {
		height += titleHeight + d.Ranks*rowHeight + axisHeight
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", pictureWidth, height)
	x := labelWidth
	for _, k := range drawnKinds() {
		fmt.Fprintf(&b, `<rect x="%d" y="10" width="14" height="14" fill="%s"/><text x="%d" y="21">%s</text>`+"\n", x, hex(k.color), x+20, k.name)
		x += 190
	}
	top := titleHeight
	for _, d := range list {
		d.writeSVG(&b, top, longest)
		top += titleHeight + d.Ranks*rowHeight + axisHeight
	}
	b.WriteString("</svg>\n")
	_, err = io.WriteString(w, b.String())
	return err
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// writeSVG draws one table below a height.
func (d Drawn) writeSVG(b *strings.Builder, top int, longest float64) {
	const digit = 7 // pixels
	scale := float64(pictureWidth-labelWidth-20) / longest
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", labelWidth, top+20, html.EscapeString(d.title()))
	top += titleHeight
	for rank, passes := range d.Passes {
		y := top + rank*rowHeight
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">stage %d</text>`+"\n", labelWidth-8, y+15, rank)
		for i, p := range passes {
			span := d.Spans[rank][i]
			left, width := labelWidth+scale*span.Start, scale*(span.End-span.Start)
			fill := hex(shade(drawnKinds()[p.Kind-1].color, p.Chunk, d.Chunks))
			fmt.Fprintf(b, `<g><title>%s: stage %d, position %d, from %.6g to %.6g</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s" stroke="white" stroke-width="0.5"/>`,
				p.describe(), rank, i, span.Start, span.End, left, y, width, rowHeight-2, fill)
			if text := fmt.Sprint(p.MicroBatch); width > float64(digit*len(text)+2) {
				fmt.Fprintf(b, `<text x="%.2f" y="%d" text-anchor="middle" font-size="10">%s</text>`, left+width/2, y+14, text)
			}
			b.WriteString("</g>\n")
		}
	}
	y := top + d.Ranks*rowHeight + 4
	for _, tick := range chart.Ticks(0, longest, 14, false) {
		x := labelWidth + scale*tick.Value
		fmt.Fprintf(b, `<path d="M%.2f %dv5" stroke="gray"/><text x="%.2f" y="%d" text-anchor="middle" font-size="10">%s</text>`+"\n", x, y, x, y+17, tick.Label)
	}
}

// WriteHTML writes a page with the picture of WriteSVG, in which the pass below the pointer is
// named.
func WriteHTML(w io.Writer, list []Drawn) error {
	var picture strings.Builder
	if err := WriteSVG(&picture, list); err != nil {
		return err
	}
	_, err := io.WriteString(w, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Pipeline schedules</title>
<style>
body { margin: 1em; font-family: sans-serif; }
svg { width: 100%; min-width: 900px; }
g:hover rect { stroke: black; stroke-width: 1.5; }
#pass { position: sticky; top: 0; background: white; padding: .3em; min-height: 1.4em; }
</style>
<p id="pass">Point at a pass to see what it is.</p>
`+picture.String()+`<script>
const shown = document.getElementById("pass");
document.querySelector("svg").addEventListener("mouseover", e => {
  const title = e.target.parentNode.querySelector(":scope > title");
  if (title) shown.textContent = title.textContent;
});
</script>
</html>
`)
	return err
}

// WritePNG draws tables as WriteSVG does.
func WritePNG(w io.Writer, list []Drawn) error {
	const row, gap, legend = 11.0, 2.0, 7.0 // points per row; rows
	longest, err := drawable(list)
	if err != nil {
		return err
	}
	var kinds []chart.Boxes
	for _, k := range drawnKinds() {
		kinds = append(kinds, chart.Boxes{Name: k.name, Color: k.color})
	}
	rows := 0.0
	for _, d := range list {
		rows += gap + float64(d.Ranks)
	}
	var ticks []chart.Tick
	y := rows
	for _, d := range list {
		ticks = append(ticks, chart.Tick{Value: y - 0.75, Label: fmt.Sprintf("%s (%.1f %%)", d.Name, 100*d.Bubble)})
		y -= gap - 0.5
		for rank, passes := range d.Passes {
			ticks = append(ticks, chart.Tick{Value: y - float64(rank) - 0.5, Label: fmt.Sprintf("stage %d", rank)})
			for i, p := range passes {
				boxes, span := &kinds[p.Kind-1], d.Spans[rank][i]
				space := min(0.1*(span.End-span.Start), longest/2000)
				boxes.Boxes = append(boxes.Boxes, chart.Box{
					X0: span.Start, X1: span.End - space, Y0: y - float64(rank) - 0.95, Y1: y - float64(rank) - 0.05, Color: shade(boxes.Color.(color.RGBA), p.Chunk, d.Chunks),
				})
			}
		}
		y -= float64(d.Ranks) + 0.5
	}
	c := chart.Chart{
		Width: 1000, Height: row*(rows+legend) + 40,
		X: chart.Axis{Label: "time", Max: longest, Ticks: chart.Ticks(0, longest, 14, false), Grid: true},
		Y: chart.Axis{Max: rows + legend, Ticks: ticks},
	}
	for _, boxes := range kinds {
		c.Series = append(c.Series, boxes)
	}
	png, err := c.PNG()
	if err != nil {
		return err
	}
	_, err = w.Write(png)
	return err
}
