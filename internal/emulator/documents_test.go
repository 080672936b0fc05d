package emulator

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

func mustDecode(b64 string) []byte {
	b, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		panic(err)
	}
	return b
}

// The status list tells of the last documents that were registered, or of those that were uploaded, the last of them first.
func TestStatusList_RegisteredOrUploaded(t *testing.T) {
	for reading, want := range map[string]func(a, b, c ticket) []string{
		"registered": func(a, b, c ticket) []string { return []string{c.bumID, b.bumID, a.bumID} },
		"uploaded":   func(a, b, c ticket) []string { return []string{a.bumID, c.bumID} },
	} {
		w := newWorld(t, func(c *Config) { c.Readings.StatusList = reading })
		a, b, c := w.register(1), w.register(2), w.register(3)
		for _, uploaded := range []ticket{c, a} {
			w.now = w.now.Add(time.Minute)
			w.mustPut(uploaded, zipOf("x"))
		}
		var list []struct{ BumID string }
		w.decode(w.call("GET", docs+"/status", ""), &list)
		var got []string
		for _, rec := range list {
			got = append(got, rec.BumID)
		}
		kit.Want(t, reading, got, want(a, b, c))
	}
}

func TestRegisterValidates(t *testing.T) {
	long := func(n int) string { return strings.Repeat("ä", n) }
	accepted := map[string]string{
		"Bare":          document(1),
		"EveryField":    document(1, `,"senderName":"S","senderIds":["a","b"],"recipientName":"","recipientIds":[],"currencyCode":"EUR","buyerReferenceId":"x","buyerReferenceType":"y","amount":-9007199254740993.10,"additionalParameters":[{"key":"k","value":"v"}],"tradingPartner":"t","flowDirection":"sending"`),
		"NameOf150":     document(1, `,"senderName":"`+long(150)+`"`),
		"IDsOf300":      document(1, `,"senderIds":["`+long(149)+`","`+long(150)+`"]`),
		"FractionalUTC": strings.Replace(document(1), "T00:00:00Z", "T23:59:59.123Z", 1),
		"UpperCaseUUID": strings.Replace(document(1), "10d9", "10D9", 1),
	}
	refused := map[string]string{
		"NotAnObject":       `"x"`,
		"Null":              `null`,
		"NoClientUUID":      strings.Replace(document(1), "clientUUID", "clientUuid", 1),
		"UUIDWithoutDashes": strings.Replace(document(1), "10d90000-0000", "10d900000000", 1),
		"EmptyDocumentID":   strings.Replace(document(1), "INV-1", "", 1),
		"DocumentIDOf101":   strings.Replace(document(1), "INV-1", long(101), 1),
		"UnknownType":       strings.Replace(document(1), `"Invoice"`, `"invoice"`, 1),
		"DateOnly":          strings.Replace(document(1), "T00:00:00Z", "", 1),
		"DateWithOffset":    strings.Replace(document(1), "T00:00:00Z", "T00:00:00+01:00", 1),
		"ImpossibleDate":    strings.Replace(document(1), "2026-10-02", "2026-02-30", 1),
		"AmountAsString":    document(1, `,"amount":"12.50"`),
		"AmountNull":        document(1, `,"amount":null`),
		"NameOf151":         document(1, `,"senderName":"`+long(151)+`"`),
		"IDsOf301":          document(1, `,"senderIds":["`+long(150)+`","`+long(150)+`"]`),
		"IDsAsString":       document(1, `,"recipientIds":"DE1"`),
		"CurrencyLower":     document(1, `,"currencyCode":"eur"`),
		"FlowUnknown":       document(1, `,"flowDirection":"out"`),
		"UnknownField":      document(1, `,"files":[]`),
		"ParameterNoValue":  document(1, `,"additionalParameters":[{"key":"k"}]`),
		"ParameterNumber":   document(1, `,"additionalParameters":[{"key":"k","value":1}]`),
		"ParameterMore":     document(1, `,"additionalParameters":[{"key":"k","value":"v","x":"y"}]`),
		"TwinNames":         document(1, `,"amount":1,"amount":2`),
		"TwinNamesDeep":     document(1, `,"additionalParameters":[{"key":"k","value":"v"},{"key":"k","value":"v","key":"l"}]`),
		"InvalidUTF8":       strings.Replace(document(1), "INV", "INV\xff", 1),
	}
	for name, doc := range accepted {
		a := newWorld(t, nil).call("POST", docs, batch(doc))
		kit.Check(t, a.status == 200, "%s: status %d: %s", name, a.status, a.body)
	}
	for name, doc := range refused {
		w := newWorld(t, nil)
		a := w.call("POST", docs, batch(document(7), doc, document(8)))
		if a.status != 400 || len(w.Registrations()) != 0 {
			t.Errorf("%s: status %d, %d registered: one bad document must spoil the batch", name, a.status, len(w.Registrations()))
		}
		kit.Lacks(t, name, a.body, "ää", "12.50")
	}
}

func TestRegisterRefusesBatches(t *testing.T) {
	twins := batch(document(1), strings.Replace(document(1), "INV-1", "INV-2", 1))
	rows := []struct {
		name, body, contentType string
		status                  int
	}{
		{"Empty", "[]", "application/json", 400},
		{"AnObject", document(1), "application/json", 400},
		{"TrailingData", batch(document(1)) + "[]", "application/json", 400},
		{"Twins", twins, "application/json", 400},
		{"OneTooMany", batch(document(1), document(2), document(3), document(4)), "application/json", 400},
		{"TooLong", batch(document(1)) + strings.Repeat(" ", 2000), "application/json", 413},
		{"WrongType", batch(document(1)), "text/plain", 400},
		{"NoType", batch(document(1)), "", 400},
		{"WithCharset", batch(document(1), document(2), document(3)), "application/json; charset=utf-8", 200},
	}
	for _, row := range rows {
		w := newWorld(t, func(c *Config) { c.MaxBatch, c.MaxBody = 3, 2000 })
		a := w.call("POST", docs, row.body, "Content-Type:"+row.contentType)
		kit.Check(t, a.status == row.status, "%s: status %d, want %d: %s", row.name, a.status, row.status, a.body)
	}
}

func TestRegisterAnswersShuffled(t *testing.T) {
	var sent []string
	for n := range 20 {
		sent = append(sent, document(n))
	}
	order := func(inOrder bool) (uuids []string) {
		w := newWorld(t, func(c *Config) { c.Readings.InOrder = inOrder })
		for _, ticket := range w.tickets(w.call("POST", docs, batch(sent...))) {
			uuids = append(uuids, ticket.clientUUID)
		}
		return uuids
	}
	got := order(true)
	kit.Check(t, slices.IsSorted(got) && len(got) == 20, "in order: %v", got)
	got = order(false)
	kit.Check(t, !slices.IsSorted(got) && len(got) == 20, "shuffled: %v", got)
}

func TestRepeatedClientUUID(t *testing.T) {
	rows := map[string]func(w *world, first ticket, again answer){
		"new": func(w *world, first ticket, again answer) {
			second := w.tickets(again)[0]
			kit.Check(t, second.bumID != first.bumID, "new: the same bumId")
		},
		"refuse": func(w *world, first ticket, again answer) {
			kit.Want(t, "status", again.status, 400)
		},
		"same": func(w *world, first ticket, again answer) {
			second := w.tickets(again)[0]
			kit.Check(t, second.bumID == first.bumID && second.url != first.url,
				"same: %v after %v", second.bumID, first.bumID)
			w.now = w.now.Add(14 * time.Minute) // over for the first URL, not for the second
			kit.Want(t, "state", w.state(second.bumID), waiting)
			w.mustPut(second, zipOf("a"))
			kit.Want(t, "same: status", w.put(first, zipOf("a")).status, 403)
		},
	}
	for reading, check := range rows {
		w := newWorld(t, func(c *Config) { c.Readings.Repeat = reading })
		first := w.register(1)
		w.now = w.now.Add(2 * time.Minute)
		check(w, first, w.call("POST", docs, batch(document(1))))
		w.wantNoViolations()
	}
}

func TestFrozenMetadata(t *testing.T) {
	w := newWorld(t, nil)
	w.register(1)
	w.register(1)
	w.wantNoViolations()
	w.call("POST", "/v1/vaults/V2/documents", batch(document(1, ` `))) // another vault, another document
	w.wantNoViolations()
	w.register(1, ` `) // one blank more is other bytes
	w.wantViolation("other metadata bytes for clientUUID " + clientUUID(1))
	s := w.Registrations()
	kit.Check(t, s[0].MetadataSHA256 == digest([]byte(document(1))) && s[2].MetadataSHA256 != s[0].MetadataSHA256, "digests: %+v", s)
}

func TestStates(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ArchiveMin, c.ArchiveMax = time.Hour, 3*time.Hour })
	good, bad, abandoned := w.register(1), w.register(2), w.register(3)
	damaged := w.register(7)
	w.mustPut(damaged, damagedZip())
	notZip, once := w.register(4), w.tickets(w.call("POST", docs, batch(strings.Replace(document(5), "INV", "FAIL-ONCE", 1))))[0]
	w.mustPut(good, zipOf("a"))
	w.mustPut(bad, zipOf("x")[:80])
	w.mustPut(notZip, "no zip at all")
	w.mustPut(once, zipOf("b"))
	kit.Want(t, "at once", w.state(good.bumID), inProgress)
	kit.Want(t, "at once", w.state(abandoned.bumID), waiting)
	w.now = w.now.Add(15*time.Minute + time.Second)
	got := w.state(abandoned.bumID)
	kit.Check(t, strings.HasPrefix(got, failed+" no package"), "after the window: %s", got)
	w.now = w.now.Add(3 * time.Hour)
	for bumID, want := range map[string]string{
		good.bumID: successful, damaged.bumID: failed + " the package is not a ZIP file: an entry is damaged", bad.bumID: failed + " the package is not a ZIP file",
		notZip.bumID: failed + " the package is not a ZIP file", once.bumID: failed + " archiving refused",
		"46aa4caf-b373-11ed-bbfc-cfd535abf178": "404",
	} {
		got := w.state(bumID)
		kit.Check(t, strings.HasPrefix(got, want), "in the end: %q, want %q", got, want)
	}
	again := w.tickets(w.call("POST", docs, batch(strings.Replace(document(5), "INV", "FAIL-ONCE", 1))))[0]
	w.mustPut(again, zipOf("b"))
	w.now = w.now.Add(3 * time.Hour)
	kit.Want(t, "the second time", w.state(again.bumID), successful)
	w.wantNoViolations()
}

// damagedZip has a file whose bytes do not match its checksum.
func damagedZip() string {
	long := strings.Repeat("0123456789", 5)
	z := []byte(zipOf(long))
	i := bytes.Index(z, []byte("invoice.xml")) + len("invoice.xml")
	z[i+3] ^= 0x10
	return string(z)
}

// What is archived stays as it is, also when its URL still works and takes other bytes.
func TestArchivedStaysArchived(t *testing.T) {
	w := newWorld(t, nil) // archives at once
	ticket := w.register(1)
	w.mustPut(ticket, zipOf("a"))
	since := w.now
	w.now = w.now.Add(time.Minute)
	w.mustPut(ticket, "no zip")
	s := w.Registrations()[0]
	kit.Check(t, w.state(ticket.bumID) == successful && s.ArchivedAt.Equal(since) && s.SHA256 == digest([]byte(zipOf("a"))), "seen %+v", s)
	w.wantViolation("other bytes under bumId")
}

// A PUT that began in time may land after the window. Until then the service says failed, and yet it is archived.
func TestPackageThatLandsLate(t *testing.T) {
	for reading, want := range map[string]string{"archive": successful, "ignore": failed} {
		w := newWorld(t, func(c *Config) { c.Readings.LatePackage = reading })
		ticket := w.register(1)
		w.SetFaults(Faults{Hook: func(op string, n int) Fault {
			if op == "upload" {
				return Fault{Kind: Abort, IsAfterWork: true, VisibleAfter: time.Hour}
			}
			return Fault{}
		}})
		a := w.put(ticket, zipOf("a"))
		kit.Check(t, a.err != nil, "answered %d", a.status)
		kit.Want(t, "before it lands", w.state(ticket.bumID), waiting)
		w.now = w.now.Add(30 * time.Minute)
		got := w.state(ticket.bumID)
		kit.Check(t, strings.HasPrefix(got, failed), "between: %s", got)
		w.now = w.now.Add(time.Hour)
		got = w.state(ticket.bumID)
		kit.Check(t, strings.HasPrefix(got, want), "%s: %s, want got that begins with %q", reading, got, want)
	}
}

func TestDoubleContentIsAViolation(t *testing.T) {
	w := newWorld(t, nil)
	first, second := w.register(1), w.register(1)
	w.mustPut(first, zipOf("a"))
	w.wantNoViolations()
	w.mustPut(second, zipOf("a"))
	w.wantViolation("double content: clientUUID " + clientUUID(1))
	third := w.register(1)
	w.mustPut(third, zipOf("b"))
	w.wantViolation("other bytes for clientUUID")
}

func TestStatusListHoldsTheLast500(t *testing.T) {
	w := newWorld(t, nil)
	for n := 0; n < 600; n += 300 {
		var some []string
		for i := range 300 {
			some = append(some, document(n+i))
		}
		w.tickets(w.call("POST", docs, batch(some...)))
	}
	w.call("POST", "/v1/vaults/V2/documents", batch(document(9999)))
	var list []map[string]any
	w.decode(w.call("GET", docs+"/status", ""), &list)
	if len(list) != 500 || list[0]["clientUUID"] != clientUUID(599) || list[499]["clientUUID"] != clientUUID(100) {
		t.Errorf("%d records, first %v, last %v", len(list), list[0], list[len(list)-1])
	}
	for _, name := range []string{"bumId", "documentId", "lastUpdated", "status", "message"} {
		if _, ok := list[0][name]; !ok {
			t.Errorf("no %s in %v", name, list[0])
		}
	}
}

type indexPage struct {
	Cursor       string
	Documents    []map[string]any
	Found, Start int
}

func (w *world) walk(query string) (pages int, ids []string) {
	w.Helper()
	for cursor := "initial"; ; pages++ {
		var p indexPage
		w.decode(w.call("GET", fmt.Sprintf("/v1/vaults/V1/index?%s&cursor=%s", query, cursor), ""), &p)
		for _, d := range p.Documents {
			ids = append(ids, d["documentId"].(string))
		}
		if p.Start == p.Found || p.Cursor == cursor || len(p.Documents) == 0 {
			return pages + 1, ids
		}
		cursor = p.Cursor
	}
}

func TestIndex(t *testing.T) {
	w := newWorld(t, nil)
	for n := range 7 {
		w.mustPut(w.register(n, `,"amount":9007199254740993.10,"tradingPartner":"T"`), zipOf("a"))
		w.now = w.now.Add(time.Second)
	}
	w.register(8) // never archived
	up := []string{"INV-0", "INV-1", "INV-2", "INV-3", "INV-4", "INV-5", "INV-6"}
	down := slices.Clone(up)
	slices.Reverse(down)
	for query, want := range map[string][]string{
		"size=3&sort=archiveDate+asc": up, "size=3": down, "size=3&sort=documentDate%20desc": down, "size=7&sort=documentDate+asc": up,
	} {
		_, got := w.walk(query)
		kit.Check(t, slices.Equal(got, want), "%s: %v, want got = %v", query, got, want)
	}
	var p indexPage
	w.decode(w.call("GET", "/v1/vaults/V1/index?size=1", ""), &p)
	d := p.Documents[0]
	if d["amount"] != "9007199254740993.10" || d["bumid"] == nil || d["archiveId"] == nil || d["archiveDate"] == nil ||
		d["tradingPartner"] != "T" || d["clientUUID"] != nil || d["bumId"] != nil || d["size"] != nil || p.Found != 7 || p.Start != 1 {
		t.Errorf("record %v, found %d, start %d", d, p.Found, p.Start)
	}
	for _, query := range []string{"size=0", "size=1001", "size=x", "sort=amount", "sort=archiveDate+up", "cursor=at-x", "cursor=x", "page=1", "size=1&size=2"} {
		kit.Want(t, query+": status", w.call("GET", "/v1/vaults/V1/index?"+query, "").status, 400)
	}
	kit.Holds(t, "the answer", w.call("GET", "/v1/vaults/V2/index", "").body, `"documents":[]`)
}

// What is archived in the middle of a descending walk pushes a document onto the next page: it comes twice.
func TestDescendingIndexShifts(t *testing.T) {
	w := newWorld(t, nil)
	for n := range 4 {
		w.mustPut(w.register(n), zipOf("a"))
		w.now = w.now.Add(time.Second)
	}
	var first, second indexPage
	w.decode(w.call("GET", "/v1/vaults/V1/index?size=2", ""), &first)
	w.mustPut(w.register(5), zipOf("a"))
	w.decode(w.call("GET", "/v1/vaults/V1/index?size=2&cursor="+first.Cursor, ""), &second)
	kit.Check(t, first.Documents[1]["bumid"] == second.Documents[0]["bumid"],
		"no shift: %v then %v", first.Documents, second.Documents)
}
