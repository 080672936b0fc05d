package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// pdfDrop is the demo's drop folder of single PDFs.
const pdfDrop = "ap-scans"

// pdfSample is one file of the demo that is dropped alone.
type pdfSample struct {
	name  string
	pages int    // 0: it is no PDF
	as    string // the file whose content it repeats, dropped when that one was taken; empty: its own
}

// listPDFSamples returns what is dropped for the PDF flow: three invoices on paper, one of them twice, and a letter that is no PDF.
func listPDFSamples() []pdfSample {
	return []pdfSample{
		{name: "scan1.pdf", pages: 1},
		{name: "scan2.pdf", pages: 3},
		{name: "Müller Oktober.pdf", pages: 12},
		{name: "scan1 nochmal.pdf", pages: 1, as: "scan1.pdf"},
		{name: "brief.docx"},
	}
}

// drop writes the file in one piece, under a temporary name first, as a scanner does.
func (s pdfSample) drop(ctx context.Context, dir string) error {
	content := drawPDF(s.name, s.pages)
	if s.as != "" {
		if !waitUntilTaken(ctx, filepath.Join(dir, pdfDrop, s.as)) {
			return nil // the demo's time is over; what is not dropped is not shown
		}
		content = drawPDF(s.as, s.pages)
	}
	if s.pages == 0 {
		content = []byte("Sehr geehrte Damen und Herren, anbei die Rechnung.\n")
	}
	to := filepath.Join(dir, pdfDrop, s.name)
	return errors.Join(os.WriteFile(to+".part", content, 0o660), os.Rename(to+".part", to))
}

// waitUntilTaken waits until a file was there and was taken; it reports false when ctx ended before.
func waitUntilTaken(ctx context.Context, path string) bool {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for there := false; ; {
		_, err := os.Lstat(path)
		if there && errors.Is(err, os.ErrNotExist) {
			return true
		}
		there = there || err == nil
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}

// drawPDF returns a small PDF of so many pages with a title on each.
func drawPDF(title string, pages int) []byte {
	var b bytes.Buffer
	var at []int
	object := func(format string, args ...any) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(at)}, args...)...)
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids bytes.Buffer
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object("<< /Type /Pages /Count %d /Kids [ %s] >>", pages, &kids)
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for i := range pages {
		text := fmt.Sprintf("BT /F1 18 Tf 72 760 Td (%x, page %d of %d) Tj ET", title, i+1, pages)
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i)
		object("<< /Length %d >>\nstream\n%s\nendstream", len(text), text)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return b.Bytes()
}
