// Package chart draws figures as inline SVG: groups of bars, and lines against a limit. A drawing names no figure that the caller does
// not have in a table beside it; its title says to those who cannot see it what is drawn and where the table is.
//
// A drawing has no style of its own, because the policy of the pages forbids it. The caller's style sheet draws these classes: chart
// (the drawing), grid (a line of the scale), scale (a number beside it, which ends at its place), label (a text below, which has its
// middle at its place), limit (the line of the limit), and those that the caller gives to bars and lines. The texts do not overlap in
// a font of 11 units of the drawing, however the drawing is scaled: where they would touch, few labels stand in two rows, and of many
// some are left out. A dot has the class of its line.
//
// The package reads and stores nothing, so a crash means nothing here: the same figures give the same bytes.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"unicode"
)

// The units of a drawing.
const (
	width     = 720
	height    = 170
	leastLeft = 60 // room for the scale
	top       = 12
	bottom    = 140 // the base line
	filled    = 0.7 // of a slot, by its bars

	betweenTexts = 3
	rowOfLabels  = 13 // height of a row

	// So many labels name classes, each of which must be told. More of them are a series: each second one tells what stands between.
	mostClasses = 12
)

// Bar is one group of bars: a value for each of the drawing's classes.
type Bar struct {
	Label  string
	Values []uint64
}

// Bars draws groups of bars. classes are those of the bars in each group; format writes the numbers of the scale.
func Bars(title string, classes []string, bars []Bar, format func(uint64) string) template.HTML {
	highest := uint64(1)
	for _, b := range bars {
		for _, v := range b.Values {
			highest = max(highest, v)
		}
	}
	end := roundUp(highest)
	scale := []uint64{0, end / 2, end}
	if end%2 != 0 {
		scale = []uint64{0, end}
	}
	var d drawing
	var texts, labels []string
	for _, v := range scale {
		texts = append(texts, format(v))
	}
	for _, b := range bars {
		labels = append(labels, b.Label)
	}
	d.begin(title, labels, texts)
	for i, v := range scale {
		d.drawScale(share(v, end), texts[i])
	}
	wide := d.slot * filled / float64(max(len(classes), 1))
	for i, b := range bars {
		left := d.leftOf(i)
		for j, v := range b.Values[:min(len(b.Values), len(classes))] {
			if v > 0 { // one document in a million is still to be seen
				y := min(yOf(share(v, end)), bottom-1)
				fmt.Fprintf(&d, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, template.HTMLEscapeString(classes[j]), left+wide*float64(j), y, wide, bottom-y)
			}
		}
		d.drawLabel(i)
	}
	return d.finish()
}

// Line is one line of a drawing, with a dot at each of its points.
type Line struct {
	Class    string
	IsDashed bool
	Points   []Point // from left to right
}

// Point is a value above one of the labels.
type Point struct {
	Label int     // from 0
	Value float64 // not negative; one that is no finite number is left out
}

// Lines draws lines above labels, and a limit that they are compared with. format writes the numbers of the scale.
func Lines(title string, labels []string, lines []Line, limit float64, format func(float64) string) template.HTML {
	highest := limit
	for _, l := range lines {
		for _, p := range l.Points {
			if isDrawn(p, labels) {
				highest = max(highest, p.Value)
			}
		}
	}
	step := stepOf(highest)
	steps := max(int(math.Ceil(highest/step-1e-9)), 1)
	end := step * float64(steps)
	var d drawing
	var texts []string
	for i := range steps + 1 {
		texts = append(texts, format(step*float64(i)))
	}
	d.begin(title, labels, texts)
	for i, text := range texts {
		d.drawScale(float64(i)/float64(steps), text)
	}
	y := yOf(limit / end)
	fmt.Fprintf(&d, `<line class="limit" x1="%g" x2="%d" y1="%.1f" y2="%.1f"/>`, d.left, width, y, y)
	for _, l := range lines {
		d.drawLine(l, labels, end)
	}
	for i := range labels {
		d.drawLabel(i)
	}
	return d.finish()
}

func isDrawn(p Point, labels []string) bool {
	return p.Label >= 0 && p.Label < len(labels) && p.Value >= 0 && !math.IsInf(p.Value, 0)
}

// drawing is an SVG that is being written.
type drawing struct {
	strings.Builder
	left, slot float64 // where the figures begin, and the width of one of them
	labels     []label
}

// label is a text below a drawing, in a row from 0.
type label struct {
	text  string
	x     float64
	row   int
	isOut bool // it has no place
}

// begin writes the beginning of a drawing with these labels, and with a scale of these texts.
func (d *drawing) begin(title string, labels, scale []string) {
	d.left = leastLeft
	for _, text := range scale {
		d.left = max(d.left, math.Ceil(lengthOf(text))+9)
	}
	d.slot = (width - d.left) / float64(max(len(labels), 1))
	high := height + rowOfLabels*d.placeLabels(labels)
	fmt.Fprintf(d, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, high, template.HTMLEscapeString(title))
}

// placeLabels gives the labels their places, in two rows where they are classes, and returns the last row that is used. Of a series as many
// have one as there is room for, in equal steps back from the last.
func (d *drawing) placeLabels(labels []string) (lastRow int) {
	rows := 1
	if len(labels) <= mostClasses {
		rows = 2
	}
	for step := 1; ; step++ {
		isWhole := true
		free := [2]float64{} // where the next label of a row may begin
		d.labels, lastRow = nil, 0
		for i, text := range labels {
			half := lengthOf(text) / 2
			l := label{text: text, x: max(min(d.middleOf(i), width-half), half), isOut: (len(labels)-1-i)%step != 0}
			for !l.isOut && l.x-half < free[l.row] {
				l.row++
				l.isOut = l.row == rows
				isWhole = isWhole && !l.isOut
			}
			if !l.isOut {
				free[l.row] = l.x + half + betweenTexts
				lastRow = max(lastRow, l.row)
			}
			d.labels = append(d.labels, l)
		}
		if isWhole || rows > 1 || step >= len(labels) {
			return lastRow
		}
	}
}

// drawScale draws a line of the scale at a share of its end.
func (d *drawing) drawScale(at float64, text string) {
	y := yOf(at)
	fmt.Fprintf(d, `<line class="grid" x1="%g" x2="%d" y1="%.1f" y2="%.1f"/><text class="scale" x="%g" y="%.1f">%s</text>`,
		d.left, width, y, y, d.left-6, y+4, template.HTMLEscapeString(text))
}

// drawLine draws a line and its dots. What has no place on the drawing is left out.
func (d *drawing) drawLine(l Line, labels []string, end float64) {
	var places, dots strings.Builder
	class := template.HTMLEscapeString(l.Class)
	for _, p := range l.Points {
		if !isDrawn(p, labels) {
			continue
		}
		x, y := d.middleOf(p.Label), yOf(p.Value/end)
		if places.Len() > 0 {
			places.WriteByte(' ')
		}
		fmt.Fprintf(&places, "%.1f,%.1f", x, y)
		fmt.Fprintf(&dots, `<circle class="%s" cx="%.1f" cy="%.1f" r="2.5"/>`, class, x, y)
	}
	dashes := ""
	if l.IsDashed {
		dashes = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(d, `<polyline class="%s" fill="none"%s points="%s"/>%s`, class, dashes, &places, &dots)
}

// drawLabel writes a label in its place.
func (d *drawing) drawLabel(i int) {
	if l := d.labels[i]; !l.isOut {
		fmt.Fprintf(d, `<text class="label" x="%.1f" y="%d">%s</text>`, l.x, bottom+16+rowOfLabels*l.row, template.HTMLEscapeString(l.text))
	}
}

func (d *drawing) finish() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String()) // numbers, and texts that are escaped
}

// leftOf returns where the bars of a slot begin.
func (d *drawing) leftOf(i int) float64 { return d.left + d.slot*(float64(i)+(1-filled)/2) }

func (d *drawing) middleOf(i int) float64 { return d.leftOf(i) + d.slot*(filled/2) }

// yOf returns the height of a share of the scale's end.
func yOf(share float64) float64 { return bottom - (bottom-top)*share }

func share(v, end uint64) float64 { return float64(v) / float64(end) }

// lengthOf returns how long a text is at most, in a wide font of 11 units.
func lengthOf(text string) (length float64) {
	for _, r := range text {
		switch {
		case strings.ContainsRune("fijlrt .,:;'|!()/-\u00a0", r):
			length += 4.5
		case strings.ContainsRune("mwMW%&@<>=+~", r):
			length += 10.8
		case unicode.IsUpper(r):
			length += 8.5
		default:
			length += 7
		}
	}
	return length
}

// roundUp gives the least round number that is not less than n: 1, 2, 3, 4, 5, 6, 8, then ten times these and 12 and 15, and so on; beyond
// 10^19 the largest number. They are so close that the highest bar fills at least two thirds of its drawing.
func roundUp(n uint64) uint64 {
	for _, of := range []uint64{1, 2, 3, 4, 5, 6, 8, 10} {
		if of >= n {
			return of
		}
	}
	for unit := uint64(1); unit <= 1e17; unit *= 10 {
		for _, of := range []uint64{12, 15, 20, 30, 40, 50, 60, 80, 100} {
			if of*unit >= n {
				return of * unit
			}
		}
	}
	return math.MaxUint64
}

// stepOf returns the least of …, 0.1, 0.2, 0.25, 0.5, 1, 2, … of which four reach a value.
func stepOf(highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(highest/4)))
	for _, of := range []float64{1, 2, 2.5, 5} {
		if of*unit*4 >= highest*(1-1e-9) {
			return of * unit
		}
	}
	return 10 * unit
}
