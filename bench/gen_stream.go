package main

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
)

// page is about what one page of a PDF takes here, with its picture.
const page = 48_000

// pdf is a document with a text layer and a picture on each page, in streams that are compressed as other programs
// compress them, and with the objects, the XMP packet and the cross-reference table beside them in plain text: a ZIP
// can save some percent of that, and hardly any of the streams.
func (k *ink) pdf(w io.Writer, size int) error {
	p := &paper{counted: counted{w: bufio.NewWriterSize(w, 64<<10)}, ink: k}
	pages := max(1, size/page)
	fmt.Fprint(p, "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	p.object("<< /Type /Catalog /Pages 2 0 R /Metadata 3 0 R /MarkInfo << /Marked true >> /Lang (de-AT) >>")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 5+3*i)
	}
	p.object(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [ %s] >>", pages, kids))
	p.object(fmt.Sprintf("<< /Type /Metadata /Subtype /XML /Length %d >>\nstream\n%s\nendstream", len(xmp), xmp))
	p.object("<< /Type /Font /Subtype /TrueType /BaseFont /LiberationSans /Encoding /WinAnsiEncoding /FirstChar 32 /LastChar 126 >>")
	for left := pages; left > 0; left-- {
		text := p.text(min(6000, size/2))
		n := len(p.offsets) + 1
		p.object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [ 0 0 595.276 841.89 ] /Contents %d 0 R\n"+
			"/Resources << /Font << /F1 4 0 R >> /XObject << /Im1 %d 0 R >> /ProcSet [ /PDF /Text /ImageC ] >>\n"+
			"/StructParents %d /Tabs /S /Group << /Type /Group /S /Transparency /CS /DeviceRGB >> >>", n+1, n+2, n))
		p.object(stream("", text))
		share := (size - p.n) / left
		rest := share - share/4000*110 - 500 // without what comes with the page beside its picture
		level := zlib.HuffmanOnly            // as fast programs do it; the others take their time
		if left%4 == 0 {
			level = zlib.DefaultCompression
		}
		p.object(stream("/Type /XObject /Subtype /Image /Width 256 /ColorSpace /DeviceGray /BitsPerComponent 8 ", p.picture(rest, level)))
	}
	for e := range size / 4000 {
		p.object(fmt.Sprintf("<< /Type /StructElem /S /P /P 3 0 R /Pg %d 0 R /K [ %d ] /Lang (de-AT) >>", 5+3*(e%pages), e/pages))
	}
	p.table()
	return p.flush()
}

// paper is a PDF in the making.
type paper struct {
	counted
	*ink
	offsets []int // of the objects
}

func (p *paper) object(body string) {
	p.offsets = append(p.offsets, p.n)
	fmt.Fprintf(p, "%d 0 obj\n%s\nendobj\n", len(p.offsets), body)
}

func (p *paper) table() {
	at := p.n
	fmt.Fprintf(p, "xref\n0 %d\n0000000000 65535 f \n", len(p.offsets)+1)
	for _, o := range p.offsets {
		fmt.Fprintf(p, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(p, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(p.offsets)+1, at)
}

func stream(more string, body []byte) string {
	return fmt.Sprintf("<< %s/Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream", more, len(body), body)
}

// text is what draws the words of a page, compressed.
func (p *paper) text(size int) []byte {
	var raw bytes.Buffer
	for y := 780.0; raw.Len() < size; y -= 11.4 {
		fmt.Fprintf(&raw, "BT /F1 %d Tf %.2f %.2f Td (%s %d) Tj ET\n", 8+p.IntN(3), 56.7+float64(p.IntN(40)), y, p.one(things), p.IntN(1e6))
	}
	return deflated(zlib.DefaultCompression, raw.Bytes())
}

// picture is a scanned area of about size bytes once it is compressed: the grey of paper, and the noise of a camera.
func (p *paper) picture(size, level int) []byte {
	const noise = 0x1f1f1f1f1f1f1f1f // five bits of each byte; twice, so that the middle is more frequent
	raw := make([]byte, max(size*10/7, 8)/8*8)
	for i := 0; i < len(raw); i += 8 {
		binary.LittleEndian.PutUint64(raw[i:], p.bytes.Uint64()&noise+p.bytes.Uint64()&noise)
	}
	return deflated(level, raw)
}

func deflated(level int, raw []byte) []byte {
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, level)
	if err == nil {
		_, err = z.Write(raw)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // the level is a constant, and a buffer takes everything
	}
	return out.Bytes()
}

// jpeg is a scan: the segments of a JPEG file around data that has been through an entropy coder, whose bytes are not
// quite equally frequent.
func (k *ink) jpeg(w io.Writer, size int) error {
	b := &counted{w: bufio.NewWriterSize(w, 64<<10)}
	fmt.Fprint(b, "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x01\x00\x60\x00\x60\x00\x00")
	for table := range 2 {
		fmt.Fprintf(b, "\xff\xdb\x00\x43%c", table)
		for i := range 64 {
			fmt.Fprintf(b, "%c", 3+i*(table+2)/4) // below 128: one byte
		}
	}
	fmt.Fprint(b, "\xff\xc0\x00\x11\x08\x0d\xb0\x09\xb0\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00")
	chunk := make([]byte, 64<<10)
	for left := size - b.n - 2; left > 0; left -= len(chunk) {
		chunk = chunk[:min(left, len(chunk))]
		k.scan(chunk)
		fmt.Fprintf(b, "%s", chunk)
	}
	fmt.Fprint(b, "\xff\xd9")
	return b.flush()
}

// scan fills a chunk with what an entropy coder leaves.
func (k *ink) scan(chunk []byte) {
	_, _ = k.bytes.Read(chunk) // always succeeds
	for i := 0; i < len(chunk); i++ {
		switch {
		case chunk[i] == 0xff && i+1 < len(chunk):
			i++
			chunk[i] = 0 // as the coder stuffs it
		case chunk[i] == 0xff || chunk[i]&0xf8 == 0x60: // one value in 32 is rare
			chunk[i] &= 0x7b
		}
	}
}

// xmp is the packet that many programs write, with room to be edited in place.
var xmp = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/"><pdfaid:part>3</pdfaid:part><pdfaid:conformance>B</pdfaid:conformance></rdf:Description>
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:format>application/pdf</dc:format><dc:title><rdf:Alt><rdf:li xml:lang="x-default">Rechnung</rdf:li></rdf:Alt></dc:title></rdf:Description>
</rdf:RDF></x:xmpmeta>
` + string(bytes.Repeat([]byte(" "), 400)) + `
<?xpacket end="w"?>`
