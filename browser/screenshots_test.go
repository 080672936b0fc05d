package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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
	w.start()
	for _, i := range invoices() {
		if !i.isHostile {
			w.drop(i)
			w.awaitStates([]invoice{i})
		}
	}
	b := c.open(t, desk)
	b.signIn(w, fetcher, password)
	for _, p := range []struct{ name, path, from string }{
		{"status", "/", "body"}, {"charts", "/", "section[aria-labelledby=overtime]"}, {"search", "/search?q=Donauwerk", "body"},
		{"document", "/document/" + w.list()["Müller 4711"].Key, "body"},
	} {
		for name, l := range map[string]look{"desk": desk, "desk-dark": desk.atNight(), "phone": phone, "phone-dark": phone.atNight()} {
			b.show(l)
			b.visit(w.url + p.path)
			ask[any](b, fmt.Sprintf("document.querySelector(%q).scrollIntoView(), null", p.from))
			b.writePicture(filepath.Join(folder, p.name+"-"+name+".png"))
		}
	}
}

func (b *tab) writePicture(path string) {
	b.t.Helper()
	data, err := shrink(b.picture())
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
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
