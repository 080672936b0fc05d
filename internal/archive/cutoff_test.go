package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// wholePDF is a PDF with one page, whose startxref leads to its table.
func wholePDF() string {
	body := "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n" + strings.Repeat("%filler\n", 200)
	return fmt.Sprintf("%sxref\n0 1\n0000000000 65535 f \ntrailer<</Size 3/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", body, len(body))
}

// streamPDF has a cross-reference stream in place of a table.
func streamPDF() string {
	body := "%PDF-1.5\n1 0 obj<</Type/Catalog>>endobj\n"
	return fmt.Sprintf("%s7 0 obj<</Type /XRef/Size 3/W[1 1 1]/Root 1 0 R/Length 3>>stream\nabc\nendstream endobj\nstartxref\n%d\n%%%%EOF\n", body, len(body))
}

func picture(write func(*bytes.Buffer, image.Image) error) string {
	m := image.NewGray(image.Rect(0, 0, 200, 200))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i)
	}
	var b bytes.Buffer
	if err := write(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

// wholeTIFF has its page before or behind the data of its two strips.
func wholeTIFF(order binary.AppendByteOrder, pageFirst bool, compression uint16) string {
	strip := strings.Repeat("pixels!.", 5000)
	const fields = 3
	page, data := uint32(8), uint32(8)
	if size := uint32(2 + fields*12 + 4 + 16); pageFirst {
		data += size
	} else {
		page += 2 * uint32(len(strip))
	}
	mark := map[bool]string{true: "MM\x00*", false: "II*\x00"}[order.String() == "BigEndian"]
	head := order.AppendUint32([]byte(mark), page)
	ifd := order.AppendUint16(nil, fields)
	field := func(tag, kind uint16, n uint32, value []byte) {
		ifd = order.AppendUint32(order.AppendUint16(order.AppendUint16(ifd, tag), kind), n)
		ifd = append(append(ifd, value...), make([]byte, 4-len(value))...)
	}
	values := page + 2 + fields*12 + 4
	field(259, 3, 1, order.AppendUint16(nil, compression))
	field(273, 4, 2, order.AppendUint32(nil, values))
	field(279, 4, 2, order.AppendUint32(nil, values+8))
	ifd = order.AppendUint32(ifd, 0)
	for _, n := range []uint32{data, data + uint32(len(strip)), uint32(len(strip)), uint32(len(strip))} {
		ifd = order.AppendUint32(ifd, n)
	}
	if pageFirst {
		return string(head) + string(ifd) + strip + strip
	}
	return string(head) + strip + strip + string(ifd)
}

// wholeFiles is a whole file of each form that has an end of its own.
func wholeFiles() map[string]string {
	table := strings.Repeat("line;1\n", 10_000)
	return map[string]string{
		"a.pdf": wholePDF(), "stream.pdf": streamPDF(), "junk.pdf": "\r\n\r\n" + wholePDF(),
		"a.xlsx": "PK\x03\x04" + strings.Repeat("x", 3000) + "PK\x05\x06" + strings.Repeat("\x00", 18),
		"a.xml":  "<?xml version=\"1.0\"?>\n<!-- x --><a:Invoice x='1'><InvoiceLine/>" + table + "</a:Invoice >\n", "short.xml": "\xef\xbb\xbf<a/>\n",
		"a.png": picture(func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) }),
		"a.jpg": picture(func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }),
		"a.tif": wholeTIFF(binary.LittleEndian, true, 5), "b.tif": wholeTIFF(binary.BigEndian, false, 5), "raw.tif": wholeTIFF(binary.LittleEndian, true, 1),
	}
}

func endOf(t *testing.T, name, content string) Ending {
	t.Helper()
	ending := kit.Value(FindEnding(name, strings.NewReader(content), int64(len(content))))(t)
	return ending
}

// I4: whatever follows a whole file, it does not look cut off; a half of it does,
// also where zeros stand for the rest.
func TestFindEnding_I4_OfEachForm(t *testing.T) {
	for name, whole := range wholeFiles() {
		for behind, more := range map[string]string{"nothing": "", "text": "<html>" + strings.Repeat("x", 5000), "zeros": strings.Repeat("\x00", 80_000)} {
			ending := endOf(t, name, whole+more)
			kit.Check(t, ending != EndsShort, "%s with %s behind it: ending = %v, want it whole", name, behind, ending)
		}
		if name == "short.xml" {
			continue
		}
		for _, part := range []int{2, 3, 5} {
			cut := whole[:len(whole)*(part-1)/part]
			kit.Want(t, fmt.Sprintf("%s cut at %d", name, len(cut)), endOf(t, name, cut), EndsShort)
			if name == "raw.tif" && part == 5 {
				continue // so few zeros may be a part of the picture
			}
			kit.Want(t, name+" cut, with zeros", endOf(t, name, cut+strings.Repeat("\x00", max(20_000, len(whole)-len(cut)))), EndsShort)
		}
	}
}

// A PDF without its end mark where readers look first is whole if its startxref
// leads to where its objects are listed.
func TestFindEnding_I4_PDFWithoutTheUsualEnd(t *testing.T) {
	table, stream := wholePDF(), streamPDF()
	linearized := "%PDF-1.4\n1 0 obj<</Linearized 1>>endobj\nxref\n0 1\n0000000000 65535 f \ntrailer<<>>\nstartxref\n0\n%%EOF\n" + strings.Repeat("x", 4000)
	for name, row := range map[string]struct {
		content string
		want    Ending
	}{
		"Usual":            {table, EndsWell},
		"Padded":           {table + strings.Repeat("\x00", 80_508), EndsOddly},
		"PageBehindIt":     {table + "<html>" + strings.Repeat("x", 5580), EndsOddly},
		"FarBehind":        {table + strings.Repeat("x", 300_000), EndsOddly},
		"NoMark":           {strings.ReplaceAll(table, "%%EOF\n", ""), EndsOddly},
		"HalfAMark":        {strings.ReplaceAll(table, "%%EOF\n", "%%EO"), EndsOddly},
		"Stream":           {stream + strings.Repeat("\x00", 5000), EndsOddly},
		"ShiftedByJunk":    {"\n\n\n" + table + strings.Repeat("\x00", 5000), EndsOddly},
		"CutInTheNumber":   {table[:strings.LastIndex(table, "startxref")+11], EndsShort},
		"LeadsNowhere":     {strings.Replace(table, "xref\n0 1\n", "xfer\n0 1\n", 1) + strings.Repeat("\x00", 5000), EndsShort},
		"BehindTheEnd":     {"%PDF-1.4\n1 0 obj\nstartxref\n99999\n" + strings.Repeat("x", 5000), EndsShort},
		"CutLinearized":    {linearized, EndsShort},
		"NoTrailer":        {strings.Replace(table, "trailer", "trimmed", 1) + strings.Repeat("\x00", 5000), EndsShort},
		"OnlyItsHead":      {"%PDF-1.4\n%\xaa\xab\xac\n", EndsWell},
		"HeadAndABeginner": {"%PDF-1.4\n1 0 obj", EndsShort},
	} {
		kit.Want(t, name, endOf(t, "x.pdf", row.content), row.want)
	}
}

// Any other file looks cut off by a long tail of zeros alone.
func TestFindEnding_I4_TailOfZeros(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	tar := "a.pdf" + zeros(95) + "0000644" + strings.Repeat("\x00x", 500) + zeros(10_240)
	for name, row := range map[string]struct {
		content string
		want    Ending
	}{
		"a.csv": {"a;b\n" + strings.Repeat("1;2\n", 12_000) + zeros(150_000), EndsShort}, "b.csv": {"a;b\n1;2\n", EndsWell}, "c.csv": {"a;b\n" + zeros(600), EndsShort},
		"d.csv": {"a;b\n\x00\x00\r\n", EndsWell}, "a.eml": {"From: x\n" + strings.Repeat("line\n", 400) + zeros(5000), EndsShort}, "blank.doc": {zeros(700), EndsShort}, "empty.txt": {"", EndsWell},
		"a.tar": {tar, EndsWell}, "a.msg": {"\xd0\xcf\x11\xe0" + zeros(20) + strings.Repeat("x", 9000) + zeros(4096), EndsWell}, "b.msg": {"\xd0\xcf\x11\xe0" + zeros(20) + strings.Repeat("x", 9000) + zeros(20_000), EndsShort},
		"black.tif":  {strings.Replace(wholeTIFF(binary.LittleEndian, true, 1), strings.Repeat("pixels!.", 10_000), zeros(80_000), 1), EndsWell},
		"nested.zip": {"PK\x03\x04" + strings.Repeat("x", 100) + "PK\x03\x04inner PK\x01\x02entry" + "PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00\x10\x00\x00\x00\x0a\x00\x00\x00\x00\x00" + strings.Repeat("y", 3000), EndsShort},
	} {
		kit.Want(t, name, endOf(t, name, row.content), row.want)
	}
}

// I21: no file makes its look take long.
func TestFindEnding_I21_IsBounded(t *testing.T) {
	tiff := "II*\x00\x08\x00\x00\x00\x01\x00" + "\x11\x01\x04\x00\xff\xff\xff\xff\x08\x00\x00\x00" + "\x08\x00\x00\x00" // its page is the next one again
	for name, content := range map[string]string{
		"fillers.jpg": "\xff\xd8\xff" + strings.Repeat("\xff", 4<<20), "chunks.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\x00\x00\x00IDATxxxx", 300_000),
		"loop.tif": tiff, "end.pdf": "%PDF-1.4\n" + strings.Repeat("startxref\n", 300_000),
	} {
		endOf(t, name, content)
	}
}

// No real invoice looks cut off.
func TestFindEnding_I4_RealInvoices(t *testing.T) {
	const folder = "../../../shared/invoices"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("SKIPPED: no set of real invoices beside the checkout (shared/invoices)")
	}
	kit.Must(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		kit.Check(t, err != nil || endOf(t, path, string(content)) != EndsShort, "%s looks cut off", path)
		return err
	}))
}

// The day before the end, the day of the end and the day after it, with and without leap days.
func TestRetention_Ended(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		when := kit.Value(time.Parse(time.RFC3339, s))(t)
		return when
	}
	type row struct {
		years         Retention
		archived, end string
	}
	kit.Rows(t, map[string]row{
		"TenYears":                 {10, "2026-11-20T13:32:00Z", "2036-11-20T00:00:00Z"},
		"OneYear":                  {1, "2026-11-20T00:00:00Z", "2027-11-20T00:00:00Z"},
		"Longest":                  {MaxRetention, "2026-12-31T23:59:59Z", "2041-12-31T00:00:00Z"},
		"LeapDay_ToALeapYear":      {8, "2028-02-29T12:00:00Z", "2036-02-29T00:00:00Z"},
		"LeapDay_ToNoLeapYear":     {10, "2028-02-29T12:00:00Z", "2038-03-01T00:00:00Z"},
		"DayBeforeLeapDay":         {10, "2028-02-28T12:00:00Z", "2038-02-28T00:00:00Z"},
		"AcrossLeapDays":           {10, "2027-03-01T12:00:00Z", "2037-03-01T00:00:00Z"},
		"Over2100_WhichIsNoLeap":   {12, "2088-02-29T12:00:00Z", "2100-03-01T00:00:00Z"},
		"TheServiceTellsItsZone":   {10, "2026-11-21T00:30:00+01:00", "2036-11-20T00:00:00Z"},
		"TheServiceIsBehindOfUTC":  {10, "2026-11-19T23:30:00-02:00", "2036-11-20T00:00:00Z"},
		"AFractionBeforeMidnight":  {10, "2026-11-19T23:59:59.999Z", "2036-11-19T00:00:00Z"},
		"AtMidnightOfTheFirstOfIt": {10, "2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z"},
	}, func(t *testing.T, row row) {
		archived, end := at(row.archived), at(row.end)
		for _, one := range []struct {
			off  time.Duration
			over bool
		}{{-24 * time.Hour, false}, {-1, false}, {0, true}, {24 * time.Hour, true}, {400 * 24 * time.Hour, true}} {
			got := row.years.Ended(archived, end.Add(one.off))
			kit.Check(t, got == one.over, "%v from its end: ended %t", one.off, got)
		}
	})
	if Retention(0).Ended(at("1990-01-01T00:00:00Z"), at("2090-01-01T00:00:00Z")) || Retention(10).Ended(time.Time{}, at("2090-01-01T00:00:00Z")) {
		t.Error("what nobody knows has ended")
	}
}

// What is taken for an identifier is written again as it was meant, and fits a path, a line and a URL.
func FuzzIdentifiers(f *testing.F) {
	for _, s := range []string{"10d90000-0000-4000-8000-00000000000A", "06gzjdqx1hf98hs4xds9252kmc", "06gzjdqx1hf9Ths4xds9252kmc", "06gzjdqx1hf98hs4xds9252\u212amc", "bum/../1", strings.Repeat("ab", 32), "{10d90000-0000-4000-8000-00000000000a}", "\u212a", "", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		kit.Check(t, err != nil || strings.EqualFold(id.String(), s), "%q is the ID %s", s, id)
		k, err := ParseKey(s)
		kit.Check(t, err != nil || len(s) == 26 && k.String() == strings.ToLower(s), "%q is the key %s", s, k)
		d, err := ParseDigest(s)
		kit.Check(t, err != nil || strings.EqualFold(d.String(), s), "%q is the digest %s", s, d)
		if r, err := ParseRemoteID(s); err == nil && (!strings.EqualFold(string(r), s) || strings.ContainsAny(s, "\r\n\x00 ") || s == "" || s == "." || s == "..") {
			t.Errorf("%q is the number %q", s, string(r))
		}
	})
}

// An amount keeps its value, digit by digit, from the text to the request.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"9007199254740993.10", "-0.0", "1e5", "00", ".5", "1.", "+1", "1_0", "٣", "0x1", strings.Repeat("9", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDecimal(s)
		if err != nil {
			return
		}
		kit.Check(t, string(d) == s && d.Rat() != nil && json.Valid([]byte(s)), "%q is taken for %q", s, string(d))
		doc := Document{Type: "Invoice", Number: "1", Date: "2026-10-31T00:00:00Z", Amount: d}
		back, err := ParseMetadata(doc.Metadata())
		kit.Check(t, err == nil && back.Amount == d && bytes.Equal(back.Metadata(), doc.Metadata()),
			"%q became %q: %v", s, string(back.Amount), err)
	})
}

// I8: the number of a document that is sent is made of its parts alone, has the form that the network takes, and no two lists of
// parts share one.
func TestNewBumID_I8_OneNumberForOneDocument(t *testing.T) {
	seen := map[RemoteID]string{}
	for _, parts := range [][]string{{}, {""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab"}, {"1:a"}, {"b", "a"}, {"A"}, {strings.Repeat("x", 1000)}} {
		id := NewBumID(parts...)
		kit.Check(t, id == NewBumID(parts...) && id.IsBumID() && string(id) == strings.ToLower(string(id)),
			"%q gives %q", parts, id)
		had, twice := seen[id]
		kit.Check(t, !twice, "%q and %s share a number", parts, had)
		seen[id] = fmt.Sprintf("%q", parts)
	}
	// The number of a document never changes: it may have been sent.
	kit.Want(t, "got", NewBumID("drop", "1"), "2c130000-bf6e-58f8-a876-dc22e2ca1371")
}

func TestIsBumID(t *testing.T) {
	for id, want := range map[RemoteID]bool{
		"10d90000-0000-1000-8000-00000000000a": true, "10d90000-0000-5000-bfff-00000000000a": true,
		"10d90000-0000-7000-8000-00000000000a": false, "10d90000-0000-0000-8000-00000000000a": false, "10d90000-0000-4000-7000-00000000000a": false,
		"10D90000-0000-4000-8000-00000000000a": false, "10d90000-0000-4000-8000-00000000000a\n": false, "": false, "54759eb3c090d83494e2d804": false,
	} {
		kit.Check(t, id.IsBumID() == want, "%q: %v, want id.IsBumID() = %v", id, !want, want)
	}
}

func TestNetworkWords(t *testing.T) {
	for word, want := range map[string]NetworkKind{"Invoice": NetworkInvoice, "CreditNote": NetworkCreditNote, "CreditNode": NetworkCreditNote, "invoice": "", "Order": "", "": ""} {
		kit.Want(t, word, ParseNetworkKind(word), want)
	}
	kit.Check(t, NetworkInvoice.NotificationWord() == "Invoice" && NetworkCreditNote.NotificationWord() == "CreditNode",
		"a kind has another word in notifications")
	kit.Check(t, ImageFile.IsKnown() && AttachmentFile.IsKnown() && DataFile.IsKnown() && !FileType("image").IsKnown() && !FileType("").IsKnown(),
		"the types of files are others")
	n := Notification{Properties: []NamedValue{{"a", "1"}, {"a", "2"}}}
	kit.Check(t, n.Property("a") == "1" && n.Property("b") == "", "a property has another value")
}

// I7: an address may carry its own authority, so a notification does not print it.
func TestNotification_I7_HidesAddresses(t *testing.T) {
	n := Notification{Links: []Link{{Relation: "file", Address: "https://b.example/k?X-Amz-Signature=canary"}}}
	kit.Lacks(t, "the text", fmt.Sprintf("%v %+v %#v", n, n, n.Links[0].Address), "canary")
}

func FuzzNetworkNumbers(f *testing.F) {
	for _, s := range []string{"54759eb3c090d83494e2d804", "a/b", "..", "", "x\n", "%2e", strings.Repeat("a", 201)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		file, errFile := ParseFileID(s)
		ack, errAck := ParseAcknowledgementID(s)
		if (errFile == nil) != (errAck == nil) || errFile == nil && (string(file) != s || string(ack) != s || len(s) > 200 || strings.ContainsAny(s, "/\\?#% \n")) {
			t.Errorf("%q: %q, %q", s, file, ack)
		}
	})
}

// I10: the identity of a document for the network follows from its files and its own bytes, and no document of another route has it.
func TestDeriveNetworkID_I10(t *testing.T) {
	file, document := []File{{Path: "a.pdf", Size: 1, SHA256: Sum([]byte("a"))}}, Sum([]byte("{}"))
	content := NetworkContent(file, document)
	id := DeriveNetworkID(content, document)
	kit.Check(t, id.String() == "238a5aa7-a9ba-519d-b46f-5406e9502e85",
		"the identity of a document that was sent before has changed: %s", id)
	others := map[string]ID{
		"OtherDocument": DeriveNetworkID(content, Sum([]byte("{ }"))), "OtherFiles": DeriveNetworkID(NetworkContent(nil, document), document),
		"VaultOfThatName": DeriveID("network", content, document), "Swapped": DeriveNetworkID(document, content),
	}
	for name, other := range others {
		kit.Check(t, other != id, "%v:, want other other than %v", name, id)
	}
	switch {
	case content != NetworkContent(file, Sum([]byte("{ }"))):
		t.Error("the same files have another digest beside another document")
	case content == ContentDigest(file):
		t.Error("an invoice that is archived too would be told of as having the same files")
	case NetworkContent(nil, document) == NetworkContent(nil, Sum([]byte("{ }"))):
		t.Error("two documents without files have the same files")
	}
}
