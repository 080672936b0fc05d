package browser

import (
	"vaultd/internal/test/kit"

	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestScreenshots writes the pictures of the documentation into the folder that VAULTD_SCREENSHOTS names, from a world that does not exist.
// "make screenshots" runs it; nothing else does, because the pictures show times.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("VAULTD_SCREENSHOTS")
	if folder == "" {
		t.Skip(`VAULTD_SCREENSHOTS names no folder: "make screenshots" makes the pictures`)
	}
	c := startChromium(t)
	w := newWorldWithUsers(t, buildProgram(t))
	w.writeHistory(time.Now())
	w.publishBooked(bookedInvoices())
	w.start()
	for _, i := range invoices() {
		if !i.isHostile {
			w.drop(i)
			w.awaitStates([]invoice{i})
		}
	}
	w.awaitExtracts()
	stranger := c.open(t, desk)
	stranger.visit(w.url + "/login")
	stranger.writePicture(filepath.Join(folder, "sign-in-desk.png"))
	report := filepath.Join(w.dir, "audit.html")
	w.run("audit", "--year", strconv.Itoa(time.Now().Year()), "-o", report)
	b := c.open(t, desk)
	b.signIn(w, fetcher, password)
	all := map[string]look{"desk": desk, "desk-dark": desk.atNight(), "phone": phone, "phone-dark": phone.atNight()}
	for _, p := range []struct {
		name, address, from string
		looks               map[string]look
	}{
		{"status", w.url + "/", "body", all},
		{"status-german", w.url + "/", "body", map[string]look{"desk": desk.in("de")}},
		{"charts", w.url + "/", "section[aria-labelledby=overtime]", all},
		{"search", w.url + "/search?q=Donauwerk", "body", all},
		{"document", w.url + "/document/" + w.list()["Müller 4711"].Key, "body", all},
		{"books", w.url + "/books", "body", all},
		{"report-form", w.url + "/report", "body", map[string]look{"desk": desk, "phone": phone}},
		{"report", "file://" + report, "body", map[string]look{"desk": desk, "desk-dark": desk.atNight(), "phone": phone}},
	} {
		for name, l := range p.looks {
			b.show(l)
			b.visit(p.address)
			if p.name == "books" { // the answer, not its form
				b.askBooks(w)
			}
			ask[any](b, fmt.Sprintf("document.querySelector(%q).scrollIntoView(), null", p.from))
			b.writePicture(filepath.Join(folder, p.name+"-"+name+".png"))
		}
	}
	b.show(desk)
	b.visit("file://" + report)
	b.writePrinted(filepath.Join(folder, "report-printed.png"))
}

// writePrinted writes a picture of the first sheet of the page as it is printed.
func (b *tab) writePrinted(path string) {
	b.t.Helper()
	reader, err := exec.LookPath("pdftoppm")
	kit.Need(b.t, err == nil, "pdftoppm is missing: install Debian's package poppler-utils")
	ctx, cancel := context.WithTimeout(b.ctx, 10*limit) // it lays out every sheet of the year, to count them
	defer cancel()
	pdf, err := chromedp.Run(ctx, func(ctx context.Context, s *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, s, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: new(true), PrintBackground: new(true), PageRanges: "1"})
		if err != nil {
			return nil, err
		}
		return r.Data, nil
	})
	kit.Must(b.t, err)
	read := exec.CommandContext(b.t.Context(), reader, "-png", "-singlefile", "-r", "100", "-")
	read.Stdin = bytes.NewReader(pdf)
	data, err := read.Output()
	kit.Need(b.t, err == nil, "pdftoppm: %v", err)
	b.writeShrunk(path, data)
}

func (b *tab) writePicture(path string) {
	b.t.Helper()
	b.writeShrunk(path, b.picture())
}

// writeShrunk writes a picture with few colours.
func (b *tab) writeShrunk(path string, picture []byte) {
	b.t.Helper()
	data, err := shrink(picture)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	kit.Must(b.t, err)
	b.t.Logf("%s: %d bytes", path, len(data))
}

// shrink writes a picture with the 256 colours that it has most often. Every other colour becomes the nearest of these: pages have few,
// and the edges of letters many.
func shrink(data []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	counts := map[color.RGBA]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			counts[rgbaAt(full, x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range colours {
		nearest[c] = uint8(palette.Index(c))
	}
	few := image.NewPaletted(full.Bounds(), palette)
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			few.SetColorIndex(x, y, nearest[rgbaAt(full, x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few)
	return out.Bytes(), err
}

func rgbaAt(i image.Image, x, y int) color.RGBA {
	return color.RGBAModel.Convert(i.At(x, y)).(color.RGBA)
}
