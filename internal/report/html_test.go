package report

import (
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"html"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
)

var update = flag.Bool("update", false, "write the golden page anew")

// The whole page, for a person to read the difference. "go test -run Golden -update" writes it.
func TestHTML_Golden(t *testing.T) {
	const golden = "testdata/audit.golden.html"
	got, _ := written(t, examine(t, filled(t, "test").config()), "html")
	if *update {
		kit.Must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want := kit.Value(os.ReadFile(golden))(t)
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
			t.Fatalf("line %d\ngot  %q\nwant %q", i+1, at(gotLines, i), at(wantLines, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

// tags gives the page's tags in their order, without what stands in quotes.
func tags(page string) (names []string) {
	for _, m := range regexp.MustCompile(`<(/?[a-zA-Z!][a-zA-Z0-9]*)`).FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// Whatever people and the service give, the page has only the tags of the template, no
// control character, nothing that turns or hides text, and no way to the outside.
func TestHTML_HostileText(t *testing.T) {
	page, _ := written(t, examine(t, filled(t, "production").config()), "html")
	allowed := map[string]bool{}
	for _, name := range append(tags(auditHTML), "html", "small", "/small", "svg", "/svg", "line", "rect", "polyline", "circle", "text", "/text") { // of rows and charts
		allowed[name] = true
	}
	for _, name := range tags(page) {
		kit.Check(t, allowed[name], "tag %q", name)
	}
	for _, r := range page {
		kit.Check(t, r == '\n' || sanitize.IsPrintable(r), "character %U", r)
	}
	kit.Lacks(t, "the text", strings.ReplaceAll(page, "&lt;img src=x onerror=", ""), "<script", "<img", "<i>", "<link", "<iframe", "<form", "href=", "src=", "url(", "@import", "onerror=", "style=")
	kit.Holds(t, "the page", page, `\u{202e}`, `\x1b[2J`, "&lt;script&gt;", `\x09\x0d\x0a`)
}

// The policy allows exactly the style that is in the page.
func TestHTML_PolicyIsThatOfItsStyle(t *testing.T) {
	for _, environment := range []string{"test", "production"} {
		page, _ := written(t, examine(t, newShelf(t, environment).config()), "html")
		_, rest, _ := strings.Cut(page, "<style>")
		style, _, _ := strings.Cut(rest, "</style>")
		sum := sha256.Sum256([]byte(style))
		want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		m := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
		kit.Check(t, m != nil && strings.HasPrefix(html.UnescapeString(m[1]), want),
			"%s: %q, want m other than nil, html.UnescapeString(m[1]) that begins with %q", environment, m, want)
	}
}

// A test environment says so before, over and behind everything, on paper as well; a
// production environment never does.
func TestReport_TestMark(t *testing.T) {
	page, _ := written(t, examine(t, filled(t, "test").config()), "html")
	kit.Holds(t, "the page", page, `<title>`+TestMark, `class="mark"`, `class="banner"`, `<tr class="test"><td colspan="10">`+TestMark, `@top-center { content: "`+TestMark, "End of the report. "+TestMark)
	table, _ := written(t, examine(t, filled(t, "test").config()), "csv")
	for i, line := range strings.Split(strings.TrimSpace(table), "\r\n") {
		kit.Check(t, i <= 0 || strings.HasPrefix(line, `"`+TestMark+`",`), "row %q", line)
	}
	object, _ := written(t, examine(t, filled(t, "test").config()), "json")
	if !strings.HasPrefix(object, `{"format":"vaultd-audit-1","notice":"`+TestMark+`"`) {
		t.Errorf("object[:100] = %v, want object that begins with %q", object[:100], `{"format":"vaultd-audit-1","notice":"`+TestMark+`"`)
	}
	for _, form := range []string{"html", "csv", "json"} {
		text, _ := written(t, examine(t, filled(t, "production").config()), form)
		kit.Check(t, !strings.Contains(text, TestMark), "production has the mark in %s", form)
	}
}

// Everything that is read has a contrast of 4.5 to 1 at least (WCAG AA), in light, in
// dark and on paper.
func TestCSS_Contrast(t *testing.T) {
	blocks := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(auditCSS, -1)
	kit.Need(t, len(blocks) == 3, "%d palettes", len(blocks))
	for i, b := range blocks {
		colour := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(b[1], -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		for _, pair := range [][2]string{
			{"ink", "paper"}, {"ink", "band"}, {"soft", "paper"}, {"soft", "band"}, {"ink", "good-band"}, {"ink", "bad-band"}, {"ink", "calm-band"},
			{"good", "paper"}, {"good", "band"}, {"good", "good-band"}, {"bad", "paper"}, {"bad", "band"}, {"bad", "bad-band"},
			{"calm", "paper"}, {"calm", "band"}, {"calm", "calm-band"},
		} {
			a, okA := colour[pair[0]]
			b, okB := colour[pair[1]]
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); !okA || !okB || ratio < 4.5 {
				t.Errorf("palette %d: %s on %s has %.2f", i, pair[0], pair[1], ratio)
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n := kit.Value(strconv.ParseUint(hex[2*i:2*i+2], 16, 8))(t)
		c := float64(n) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
