package packager

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// prose is text that says little again and again, as invoices do.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "  <cbc:Note>%s %d</cbc:Note>\n", []string{"Buchenholz", "Fracht", "Größe", "Montage"}[r.IntN(4)], r.IntN(1e6))
	}
	return b.String()[:n]
}

// uneven is what an entropy coder leaves that is not quite through: no repetition,
// and some values more frequent than others.
func uneven(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
		if r.IntN(3) == 0 {
			b[i] |= 0x50
		}
	}
	return string(b)
}

func random(r *rand.Rand, n int) string { return noise(byte(r.IntN(256)), n) }

// scanned is a page of paper with some letters on it, and the noise of a camera.
func scanned(r *rand.Rand, w, h int) string {
	page := image.NewGray(image.Rect(0, 0, w, h))
	for i := range page.Pix {
		page.Pix[i] = uint8(max(0, min(255, 235+r.NormFloat64()*4)))
	}
	for range w * h / 400 {
		x, y := r.IntN(w), r.IntN(h)
		for i := range 10 {
			page.SetGray(x+i*i/12, y+i, color.Gray{Y: uint8(30 + r.IntN(40))}) // outside of the page it does nothing
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, page, &jpeg.Options{Quality: 92}); err != nil {
		panic(err)
	}
	return b.String()
}

func zipped(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

// paper is a PDF with streams of all sizes, some of which end too late or never.
func paper(r *rand.Rand, n int) string {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i := 1; b.Len() < n; i++ {
		filter, data := "FlateDecode", ""
		switch r.IntN(5) {
		case 0:
			filter, data = "DCTDecode", scanned(r, 50+r.IntN(300), 300)
		case 1:
			data = zipped(random(r, 5_000+r.IntN(60_000)))
		default:
			data = zipped(prose(r, 2_000+r.IntN(40_000)))
		}
		fmt.Fprintf(&b, "%d 0 obj\n<< /Filter /%s /Length %d >>\nstream\n%s", i, filter, len(data), data)
		b.WriteString([]string{"\nendstream\nendobj\n", "\r\nendstream\r\nendobj\r\n", "\nendstre", "\nendstream\nendstream\nstream\n"}[r.IntN(4)])
		fmt.Fprintf(&b, "%d 1 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [ 0 0 595.276 841.89 ] /Contents %d 0 R >>\nendobj\n", i, i)
	}
	return b.String() + "%%EOF\n"
}

// anything is content that begins anew what it does at any place.
func anything(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		m := []int{1, 7, 1023, 1024, 1025, minRun - 1, minRun, minRun + 1, 70_000}[r.IntN(9)]
		switch r.IntN(8) {
		case 0:
			b.WriteString(prose(r, m))
		case 1:
			b.WriteString(random(r, m))
		case 2:
			b.WriteString(uneven(r, m))
		case 3:
			b.WriteString(strings.Repeat(string(rune(r.IntN(128))), m))
		case 4:
			b.WriteString(strings.Repeat(random(r, 5_000), 1+m/5_000))
		case 5:
			b.WriteString([]string{"stream\n", "endstream", "\nendobj\n", "PK\x03\x04", "\xff\xd8\xff", "%PDF-"}[r.IntN(6)])
		case 6:
			b.WriteString(zipped(prose(r, m)))
		default:
			all := b.String()
			b.WriteString(all[r.IntN(len(all)+1):])
		}
	}
	return b.String()[:n]
}

// BenchmarkBuild seals a small and an average invoice; bytes are those dropped.
func BenchmarkBuild(b *testing.B) {
	for name, files := range map[string]tree{
		"Tiny":   {"metadata.json": sidecar, "invoice.xml": strings.Repeat("<cbc:ID>4711</cbc:ID>\n", 900)},
		"Normal": {"metadata.json": sidecar, "invoice.xml": strings.Repeat("<cbc:ID>4711</cbc:ID>\n", 900), "invoice.pdf": "%PDF" + noise(1, 440_000)},
	} {
		b.Run(name, func(b *testing.B) {
			_, root := drop(b, files)
			to := filepath.Join(b.TempDir(), "a.zip")
			size := 0
			for _, content := range files {
				size += len(content)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				kit.Value(buildAt(b.Context(), root, rules, to))(b)
			}
		})
	}
}

// A file is copied byte for byte, or refused for its own fault: its start or its end, as far as readers look for them.
func FuzzPDF_I4(f *testing.F) {
	for _, s := range []string{goodPDF, "", "%PDF-", "%%EOF", "%%EOF%PDF-", strings.Repeat(" ", 1022) + goodPDF, goodPDF + strings.Repeat("x", 1020), "PK\x03\x04", "\x00\x00", "%PDF-1%%EO"} {
		f.Add([]byte(s), uint16(0))
		f.Add([]byte(s), uint16(chunkSize-7))
	}
	f.Fuzz(func(t *testing.T, content []byte, padding uint16) {
		if at := bytes.Index(content, []byte("%PDF-")); at >= 0 { // far apart, so that the copy takes several pieces
			content = slices.Insert(slices.Clone(content), at+5, bytes.Repeat([]byte("x"), int(padding))...)
		}
		_, root := drop(t, tree{"a.pdf": string(content)})
		s, path, err := copyPDF(t, root, PDFRules{Receiving: "a@b.example", Notify: "a@b.example"}, nil)
		head, tail := content[:min(len(content), 1024)], content[max(0, len(content)-1024):]
		isPDF := bytes.Contains(head, []byte("%PDF-")) && !archive.IsBegunPDF(content)
		kit.Need(t, isPDF == (err == nil) && (err == nil || isRefusal(err)), "%v, whole %v", err, isPDF)
		isWhole := isPDF && bytes.Contains(tail, []byte("%%EOF"))
		waits := CheckFileEnd(root, "a.pdf") != nil
		kit.Check(t, !isWhole || !waits, "a whole PDF waits for its end")
		kit.Check(t, !isWhole || len(s.Endings.Short)+len(s.Endings.Odd) <= 0,
			"endings of a whole PDF = %v, want none", s.Endings)
		if err == nil {
			copied, _ := os.ReadFile(path)
			kit.Check(t, bytes.Equal(copied, content) && s.Content == archive.Sum(content), "the copy is another file")
		}
	})
}

// A list of files names files inside the folder, and its faults are words.
func FuzzManifest(f *testing.F) {
	sum := strings.Repeat("ab", 32)
	for _, s := range []string{sum + "  rechnung.pdf\n", sum + " *a/b.pdf\r\n", sum + "  ../x\n", "\xef\xbb\xbf" + sum + "  ü.pdf", "x", "", sum, sum + "  \x00", "\\" + sum + "  a\\nb\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		all, faults := readManifest("manifest-sha256.txt", src)
		for _, w := range all {
			p := w.path
			kit.Check(t, p != "" && !path.IsAbs(p) && path.Clean(p) == p && p != ".." && !strings.HasPrefix(p, "../"), "%q is wanted", p)
		}
		if err := newRefusal(faults, archive.AsRead{}); err != nil {
			s := err.Error() + err.(*Refusal).Text()
			kit.Check(t, !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }), "control character in %q", s)
		}
	})
}
