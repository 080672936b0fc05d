package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
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

// requireProgram returns the path of a program. Where it is missing the test is skipped; with CI=true it fails.
func requireProgram(t *testing.T, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		kit.Missing(t, name+" is not installed: how the page prints; install Debian's package "+debianPackage)
	}
	return path
}

// Printed on A4, each sheet has its number and how many there are, the heads of the table stand on each sheet with rows, and a test
// environment says so on each. A browser prints it: vaultd itself starts none.
func TestHTML_Print(t *testing.T) {
	browser, reader := requireProgram(t, "chromium", "chromium"), requireProgram(t, "pdftotext", "poppler-utils")
	s := filled(t, "test")
	for i := range 60 {
		s.Item(fmt.Sprint("Folder ", i)).Archive(noon.Add(-10*time.Hour), time.Hour)
	}
	page, _ := written(t, examine(t, s.config()), "html")
	dir := t.TempDir()
	file, pdf := filepath.Join(dir, "audit.html"), filepath.Join(dir, "audit.pdf")
	kit.Must(t, os.WriteFile(file, []byte(page), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"), "--no-pdf-header-footer", "--print-to-pdf="+pdf, "file://"+file).CombinedOutput()
	kit.Need(t, err == nil, "%v\n%s", err, out)
	var text bytes.Buffer
	read := exec.CommandContext(ctx, reader, "-layout", pdf, "-")
	read.Stdout = &text
	kit.Must(t, read.Run())
	sheets := strings.Split(strings.TrimSuffix(text.String(), "\f"), "\f")
	kit.Need(t, len(sheets) >= 4, "%d sheets", len(sheets))
	tables := 0
	for i, sheet := range sheets {
		want := fmt.Sprintf("Page %d of %d", i+1, len(sheets))
		kit.Check(t, strings.Contains(sheet, want), "sheet %d does not say %q", i+1, want)
		kit.Holds(t, "sheet", sheet, TestMark)
		if strings.Contains(sheet, "_RECEIPT.txt") {
			if tables++; !strings.Contains(sheet, "documentId") || !strings.Contains(sheet, "clientUUID") {
				t.Errorf("sheet %d has rows and no heads", i+1)
			}
		}
	}
	kit.Check(t, tables >= 2, "the table is on %d sheets", tables)
}

// I21: entries that are read on all cores are used in their order, each once, and the first error in that order ends it, wherever it is from.
func TestInOrder_I21_KeepsTheOrder(t *testing.T) {
	failed := errors.New("failed")
	const count = 1000
	for name, at := range map[string]struct{ walk, read, use int }{ // each fails at that entry; count: all succeed
		"None": {count, count, count}, "First": {count, 0, count}, "Read": {count, 700, 900}, "Use": {count, 701, 300}, "Walk": {500, count, count}, "ReadBeforeWalk": {500, 3, count},
	} {
		walk := func(fn func(ledger.Entry) error) error {
			for i := range count {
				if i == at.walk {
					return failed
				}
				if err := fn(ledger.Entry{Rev: uint32(i)}); err != nil {
					return err
				}
			}
			return nil
		}
		read := func(e ledger.Entry) (int, error) {
			if int(e.Rev) >= at.read {
				return 0, failed
			}
			return int(e.Rev), nil
		}
		used := 0
		err := inOrder(walk, read, func(n int) error {
			kit.Want(t, name+": entry", n, used)
			if used++; n == at.use {
				return failed
			}
			return nil
		})
		want := min(at.walk, at.read, at.use+1)
		isNone := want >= count
		kit.Check(t, used == min(want, count) && (err == nil) == isNone, "%s: %d were used, want %d: %v", name, used, want, err)
	}
}
