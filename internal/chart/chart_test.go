package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// element is one element of a drawing.
type element struct {
	name, text string
	attributes map[string]string
}

func (e element) number(t *testing.T, name string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(e.attributes[name], 64)
	kit.Need(t, err == nil, "%s of %v: %v", name, e, err)
	return f
}

// elementsOf reads a drawing as a browser does.
func elementsOf(t *testing.T, drawn template.HTML) (all []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(drawn)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		kit.Need(t, err == nil, "%v in %s", err, drawn)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			all = append(all, e)
		case xml.CharData:
			all[len(all)-1].text += string(token)
		}
	}
}

// dejaVu are the widths of characters in DejaVu Sans, which is wide, in thousandths of the font's size.
var dejaVu = map[rune]float64{'n': 634, 'm': 974, 'i': 278, 'b': 635, 's': 521, 't': 392, 'o': 612, 'h': 634, 'd': 635, 'r': 411, 'e': 615, 'u': 634, 'a': 613, 'y': 592,
	'T': 611, 'N': 748, 'v': 592, 'g': 635, 'w': 818, '<': 838, '&': 780, ' ': 318, '\u00a0': 318, '.': 318, ',': 318, '/': 337, '%': 950, '-': 361, '+': 838}

// lengthIn returns the length of a text in that font, of 11 units.
func lengthIn(t *testing.T, text string) (length float64) {
	t.Helper()
	for _, r := range text {
		w := dejaVu[r]
		if r >= '0' && r <= '9' {
			w = 636
		}
		kit.Need(t, w != 0, "the width of %q is not known", r)
		length += w * 11 / 1000
	}
	return length
}

// checkDrawing checks what holds for every drawing: it has a name for those who cannot see it and no style of its own, no text touches
// another one, and nothing lies outside.
func checkDrawing(t *testing.T, title string, drawn template.HTML) {
	t.Helper()
	all := elementsOf(t, drawn)
	if svg := all[0]; svg.name != "svg" || svg.attributes["role"] != "img" || svg.attributes["aria-label"] != title {
		t.Errorf("%v is no drawing with the name %q", svg, title)
	}
	high, err := strconv.ParseFloat(strings.TrimPrefix(all[0].attributes["viewBox"], "0 0 720 "), 64)
	kit.Want(t, "the error", err, nil)
	type box struct{ left, right, y float64 }
	var boxes []box
	for _, e := range all {
		kit.Check(t, e.name != "style" && e.name != "script" && e.attributes["style"] == "" && (e.name == "svg" || e.attributes["class"] != ""),
			"the policy of the pages forbids %v, or it has no class", e)
		for name, value := range e.attributes {
			kit.Lacks(t, name, value, "NaN", "Inf")
		}
		switch e.name {
		case "text":
			long, at := lengthIn(t, e.text), e.number(t, "x")
			b := box{at - long/2, at + long/2, e.number(t, "y")}
			if e.attributes["class"] == "scale" {
				b = box{at - long, at, b.y}
			}
			kit.Check(t, b.left >= 0 && b.right <= width && b.y+3 <= high,
				"%q lies outside, from %.1f to %.1f", e.text, b.left, b.right)
			for _, o := range boxes {
				kit.Check(t, b.left >= o.right || o.left >= b.right || math.Abs(b.y-o.y) >= 11,
					"%q at %.1f touches another text in %s", e.text, at, drawn)
			}
			boxes = append(boxes, b)
		case "rect":
			if x, y, h := e.number(t, "x"), e.number(t, "y"), e.number(t, "height"); x < leastLeft || x+e.number(t, "width") > width || y < top-0.1 || y+h > bottom+0.1 || h < 0.9 {
				t.Errorf("%v lies outside, or cannot be seen", e)
			}
		case "circle":
			if x, y := e.number(t, "cx"), e.number(t, "cy"); x < leastLeft || x > width || y < top-0.1 || y > bottom+0.1 {
				t.Errorf("%v lies outside", e)
			}
		}
	}
}

func plain(n uint64) string    { return strconv.FormatUint(n, 10) }
func percent(f float64) string { return fmt.Sprintf("%.4g\u00a0%%", f*100) }

// Whatever is drawn: texts do not touch, nothing lies outside, every value above zero can be seen, and the title and the labels
// are texts whatever they hold.
func TestBars_AnyFiguresAreReadable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		title := `Days & "months" <b>`
		var bars []Bar
		positive := 0
		long := r.IntN(14)
		for i := range r.IntN(40) {
			b := Bar{Label: strings.Repeat("<", long) + strconv.Itoa(i)}
			for range 2 {
				v := r.Uint64() >> r.IntN(65)
				if b.Values = append(b.Values, v); v > 0 {
					positive++
				}
			}
			bars = append(bars, b)
		}
		drawn := Bars(title, []string{"archived", "rejected"}, bars, plain)
		checkDrawing(t, title, drawn)
		kit.Want(t, "bars", strings.Count(string(drawn), "<rect"), positive)
		if n := len(bars); n > mostClasses && !strings.Contains(string(drawn), ">"+template.HTMLEscapeString(bars[n-1].Label)+"<") {
			t.Errorf("the last label is not in %s", drawn)
		}
	}
}

// The classes of a histogram are all named, in two rows where one has no room; of a series the last is, and before it each third.
func TestBars_ClassesAreAllNamed(t *testing.T) {
	names := []string{"unter 10 min", "10 min bis 1 h", "1 h bis 4 h", "4 h bis 12 h", "12 h bis 24 h", "24 h bis 2 Tage", "2 Tage bis 7 Tage", "7 Tage und mehr"}
	var classes, days []Bar
	for i, name := range names {
		classes = append(classes, Bar{name, []uint64{uint64(i)}})
	}
	for i := range 30 {
		days = append(days, Bar{fmt.Sprintf("%d.11.", i+1), []uint64{1}})
	}
	drawn := Bars("x", []string{"a"}, classes, plain)
	checkDrawing(t, "x", drawn)
	for _, name := range names {
		kit.Holds(t, name, string(drawn), ">"+name+"<")
	}
	drawn = Bars("x", []string{"a"}, days, plain)
	checkDrawing(t, "x", drawn)
	for i, day := range days {
		isNamed := strings.Contains(string(drawn), ">"+day.Label+"<")
		kit.Check(t, isNamed == ((29-i)%3 == 0), "%s is named: %t", day.Label, isNamed)
	}
}

// The scale ends at a round number that no value exceeds, and a bar has the height of its share of it.
func TestBars_HeightsAreShares(t *testing.T) {
	all := elementsOf(t, Bars("x", []string{"a"}, []Bar{{"1", []uint64{1000}}, {"2", []uint64{250}}, {"3", []uint64{0}}, {"4", []uint64{1}}}, plain))
	var scale []string
	var heights []float64
	for _, e := range all {
		switch {
		case e.attributes["class"] == "scale":
			scale = append(scale, e.text)
		case e.name == "rect":
			heights = append(heights, e.number(t, "height"))
		}
	}
	kit.Check(t, slices.Equal(scale, []string{"0", "500", "1000"}) && slices.Equal(heights, []float64{128, 32, 1}),
		"scale %v, heights %v", scale, heights)
}

// The end of the scale is a round number so close to the highest value that its bar fills at least two thirds of the drawing.
func TestBars_TheHighestFillsTheDrawing(t *testing.T) {
	for n, want := range map[uint64]uint64{1: 1, 3: 3, 7: 8, 9: 10, 11: 12, 12: 12, 13: 15, 21: 30, 51: 60, 101: 120, 1_010: 1_200, 60_001: 80_000, 999_999: 1_000_000,
		1e19: 1e19, 1e19 + 1: math.MaxUint64} {
		kit.Want(t, fmt.Sprintf("the scale for %d ends at", n), roundUp(n), want)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		n := 1 + r.Uint64()>>r.IntN(64)
		if n > 1e19 {
			continue
		}
		for _, e := range elementsOf(t, Bars("x", []string{"a"}, []Bar{{"1", []uint64{n}}}, plain)) {
			if e.name == "rect" && e.number(t, "height") < 2./3*(bottom-top)-0.1 {
				t.Errorf("the only bar, of %d, is %.1f high", n, e.number(t, "height"))
			}
		}
	}
}

// The limit stands where its value is, the forecast is told from what was used by more than its class, and a single point is
// drawn, too.
func TestLines_ShareOfTheYear(t *testing.T) {
	months := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}
	drawn := Lines("Share", months, []Line{
		{Class: "used", Points: []Point{{0, 0.5}, {1, 0.75}}},
		{Class: "forecast", IsDashed: true, Points: []Point{{1, 0.75}, {11, 1.5}}},
	}, 1, percent)
	checkDrawing(t, "Share", drawn)
	for _, e := range elementsOf(t, drawn) {
		switch {
		case e.attributes["class"] == "limit":
			y := e.number(t, "y1")
			kit.Check(t, math.Abs(y-(bottom-(bottom-top)/1.5)) <= 0.1, "the limit is at %.1f", y)
		case e.name == "polyline":
			isDashed := e.attributes["stroke-dasharray"] != ""
			kit.Check(t, isDashed == (e.attributes["class"] == "forecast"), "%v: dashed %t", e, isDashed)
		}
	}
	kit.Want(t, "dots for 4 points", strings.Count(string(drawn), "<circle"), 4)
}

func TestLines_AnyFiguresAreReadable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var labels []string
		for i := range r.IntN(15) {
			labels = append(labels, strconv.Itoa(i+1))
		}
		var lines []Line
		for range r.IntN(3) {
			l := Line{Class: "used"}
			for i := range r.IntN(15) {
				l.Points = append(l.Points, Point{i - 1, []float64{r.Float64(), r.ExpFloat64() * 1e6, math.NaN(), math.Inf(1), -1, 0, 1e-9}[r.IntN(7)]})
			}
			lines = append(lines, l)
		}
		checkDrawing(t, "x", Lines("x", labels, lines, []float64{1, 0, 0.3, 1e7}[r.IntN(4)], percent))
	}
}
