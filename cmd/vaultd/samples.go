package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"strings"
)

// sample is one invoice folder of the demo.
type sample struct {
	drop, folder string
	sidecar      []byte
	files        map[string][]byte // path below the folder → content
	slow         bool              // written piece by piece, as a busy copy is
	after        string            // dropped only when this folder was taken
}

// samples returns the folders of the demo: a dozen invoices for two vaults, of
// several sizes, and every kind of trouble a first day brings.
func samples() []sample {
	plain := []sample{
		invoice("acme-in", "Müller 4711", "4711", "Müller GmbH", "119.00", 0),
		invoice("acme-in", "Huber 88", "RE-2026-0088", "Huber & Söhne KG", "2380.50", 500),
		invoice("acme-in", "Otto 19", "19", "Otto Büromöbel", "8999.99", 1100),
		invoice("beta-in", "Kunz 301", "301", "Kunz Logistik", "60112.00", 2100),
		invoice("beta-in", "Fischer 9", "9", "Fischer Papier", "12.30", 0),
		invoice("beta-in", "Bauer 77", "77", "Bauer Energie AG", "9007199254740993.10", 300),
		invoice("beta-in", "Braun 15", "15", "Braun Technik", "410.00", 0),
	}
	plain[5].files["Anlagen/Zählerstände 2026.csv"] = []byte("Zähler;Stand\r\n4711;10233\r\n4712;998\r\n")

	credit := invoice("beta-in", "Meier 12", "GS-12", "Meier Werbung", "-75.00", 0)
	credit.sidecar = bytes.Replace(credit.sidecar, []byte(`"Invoice"`), []byte(`"CreditNote"`), 1)

	slow := invoice("acme-in", "Wagner 5", "5", "Wagner Bau", "15400.00", 800)
	slow.slow = true

	faulty := invoice("acme-in", "Schulz 3", "3", "Schulz Reinigung", "333.00", 0)
	faulty.sidecar = bytes.Replace(faulty.sidecar, []byte(`"2026-10-31"`), []byte(`"31.10.2026"`), 1)
	faulty.sidecar = bytes.Replace(faulty.sidecar, []byte(`: 333.00`), []byte(`: "333,00"`), 1)

	failing := invoice("acme-in", "Kern 6", failingNumber, "Kern IT", "77.70", 0)

	again := invoice("acme-in", "Otto 19 Kopie", "19", "Otto Büromöbel", "8999.99", 1100)
	again.after = "Otto 19"

	return append(plain, credit, slow, faulty, failing, again)
}

// failingNumber is the documentId that the demo's service fails to archive.
const failingNumber = "FAIL-6"

// invoice makes a folder with a sidecar, an invoice as XML and PDF, and a scan as
// large as edge×edge pixels need; the same arguments give the same bytes.
func invoice(drop, folder, number, sender, amount string, edge int) sample {
	meta := []struct {
		key   string
		value any
	}{
		{"documentType", "Invoice"}, {"documentId", number}, {"documentDate", "2026-10-31"},
		{"senderName", sender}, {"senderIds", []string{"DE" + fmt.Sprintf("%09d", len(sender)*1234567%1e9)}},
		{"recipientName", "Acme GmbH"}, {"currencyCode", "EUR"}, {"amount", json.Number(amount)},
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	for i, m := range meta {
		v, err := json.Marshal(m.value)
		if err != nil {
			panic(err) // texts and numbers always encode
		}
		comma := ","
		if i == len(meta)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "  %q: %s%s\n", m.key, v, comma)
	}
	b.WriteString("}\n")
	s := sample{drop: drop, folder: folder, sidecar: b.Bytes(), files: map[string][]byte{
		"rechnung.xml": invoiceXML(number, sender, amount),
		"rechnung.pdf": invoicePDF("Rechnung "+number, sender, "Betrag EUR "+amount),
	}}
	if edge > 0 {
		s.files["scan.jpg"] = scan(edge)
	}
	return s
}

func invoiceXML(number, sender, amount string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
  <cbc:ID>%s</cbc:ID>
  <cbc:IssueDate>2026-10-31</cbc:IssueDate>
  <cbc:Note>%s</cbc:Note>
`, number, strings.ReplaceAll(sender, "&", "&amp;"))
	for line := range 40 {
		fmt.Fprintf(&b, "  <cbc:Note>Position %d: Lieferung und Leistung laut Vertrag, Menge %d</cbc:Note>\n", line+1, line%7+1)
	}
	fmt.Fprintf(&b, "  <cbc:PayableAmount currencyID=\"EUR\">%s</cbc:PayableAmount>\n</Invoice>\n", amount)
	return b.Bytes()
}

// invoicePDF writes the smallest honest PDF: one page, one font, a few lines.
func invoicePDF(lines ...string) []byte {
	var text strings.Builder
	text.WriteString("BT /F1 14 Tf 72 770 Td 20 TL\n")
	for _, l := range lines {
		fmt.Fprintf(&text, "(%s) Tj T*\n", pdfText(l))
	}
	text.WriteString("ET")
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", text.Len(), text.String()),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, off := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", off)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref)
	return b.Bytes()
}

// pdfText writes a text in WinAnsi, which holds the first 256 characters as they are.
func pdfText(s string) string {
	var b []byte
	for _, r := range s {
		switch {
		case r == '(' || r == ')' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 256:
			b = append(b, byte(r))
		default:
			b = append(b, '?')
		}
	}
	return string(b)
}

// scan draws paper with noise, as scanners see it: it hardly shrinks.
func scan(edge int) []byte {
	r := rand.New(rand.NewPCG(uint64(edge), 1))
	img := image.NewGray(image.Rect(0, 0, edge, edge))
	for i := range img.Pix {
		img.Pix[i] = uint8(200 + r.IntN(56))
	}
	for y := edge / 8; y < edge; y += edge/40 + 1 {
		for x := edge / 10; x < edge*9/10; x++ {
			img.SetGray(x, y, color.Gray{Y: uint8(r.IntN(90))})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 92}); err != nil {
		panic(err) // a picture in memory always encodes
	}
	return b.Bytes()
}
