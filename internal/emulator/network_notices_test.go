package emulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// mustPublish publishes a received document and returns its bumId.
func (w *world) mustPublish(p ReceivedDocument) string {
	w.Helper()
	id := kit.Value(w.PublishReceived(p))(w)
	return id
}

// withFiles is a received document with two files.
func withFiles() ReceivedDocument {
	return ReceivedDocument{Data: []byte(`{"externalDocumentIdentifier":{},"note":"from afar"}`),
		Files: []ReceivedFile{{Name: "a.pdf", Content: []byte("%PDF")}, {FileType: "dataFile", Name: "a.xml", Content: []byte("<a/>")}}}
}

// fetchedDocument is a received document as GET tells it.
type fetchedDocument struct {
	BumID    string
	FileRefs []struct{ RefID, FileType string }
	Links    []struct{ Rel, Href, Method string }
	Data     map[string]any
	Origin   map[string]any
}

// A received document is announced, fetched with its files, confirmed and acknowledged, in that order.
func TestNetwork_Receive(t *testing.T) {
	w := newNetworkWorld(t, nil)
	id := w.mustPublish(withFiles())
	waiting := w.list("page=1&pageSize=10&type=DocumentsReceived").Notifications
	kit.Need(t, len(waiting) == 1 && waiting[0].pair() == "TechnicalAccept/Delivered" && waiting[0].BumID == id,
		"waiting: %+v", waiting)
	var d fetchedDocument
	w.decode(w.net("GET", invoicesPath+"/"+id, ""), &d)
	if d.BumID != id || d.Data["note"] != "from afar" || len(d.FileRefs) != 2 || d.FileRefs[1].FileType != "dataFile" || d.Origin["source"] == nil {
		t.Errorf("document: %+v", d)
	}
	for i, want := range []string{"%PDF", "<a/>"} {
		kit.Check(t, d.Links[i].Href == "http://api.test/v2/files/"+d.FileRefs[i].RefID && len(d.FileRefs[i].RefID) == 24,
			"link %+v", d.Links[i])
		a := w.net("GET", d.Links[i].Href, "")
		kit.Check(t, a.body == want, "file: %+v", a)
	}
	body := fmt.Sprintf(`{"bumid":%q,"documentType":"Invoice","responseCode":"TechnicalAccept","actionCode":"DeliveryConfirmed","notificationCreated":"1600000000"}`, id)
	for range 2 { // it is not idempotent
		a := w.net("POST", notices, body)
		kit.Check(t, a.status == 201, "confirm: %+v", a)
	}
	if a := w.net("DELETE", notices+"/"+waiting[0].AcknowledgementID, ""); a.status != 200 {
		t.Errorf("acknowledge: %+v", a)
	}
	r := w.ReceivedDocuments()
	if len(r) != 1 || !r[0].WasSent || !r[0].Files[0].WasSent || !r[0].Files[1].WasSent || len(r[0].Notified) != 2 || r[0].Notified[0].ActionCode != "DeliveryConfirmed" {
		t.Errorf("received: %+v", r)
	}
	w.wantNoViolations()
}

// The readings of how received documents are announced.
func TestNetwork_Announcements(t *testing.T) {
	for reading, want := range map[string]struct{ plain, byType string }{
		"type":      {"[]", "[TechnicalAccept/Delivered]"},
		"code":      {"[TechnicalInformation/Received]", "[TechnicalInformation/Received]"},
		"code-only": {"[TechnicalInformation/Received]", "400 004.0002"},
	} {
		w := newNetworkWorld(t, func(c *Config) { c.Readings.Network.Received = reading })
		w.mustPublish(withFiles())
		kit.Want(t, reading+", plain", fmt.Sprint(w.pairs()), want.plain)
		got := w.codeOf(w.net("GET", notices+"?page=1&pageSize=9&type=DocumentsReceived", ""))
		if got == "200" {
			got = fmt.Sprint(w.pairs("type=DocumentsReceived"))
		}
		kit.Want(t, reading+", by type", got, want.byType)
	}
}

// A list needs a page and its size, and takes known types alone.
func TestNetwork_QueryOfNotices(t *testing.T) {
	w := newNetworkWorld(t, nil)
	for query, want := range map[string]string{
		"page=1&pageSize=1": "200", "page=1&pageSize=5000&documentType=Order": "200", "page=7&pageSize=9": "200", "": "400 004.0002", "page=1": "400 004.0002",
		"pageSize=1": "400 004.0002", "page=0&pageSize=1": "400 004.0002", "page=1&pageSize=5001": "400 004.0002", "page=1&pageSize=1&documentType=Letter": "400 004.0002",
		"page=1&pageSize=1&documentType=CreditNote": "400 004.0002", "page=1&page=2&pageSize=1": "400 004.0002", "page=1&pageSize=1&type=All": "400 004.0002",
	} {
		kit.Want(t, query, w.codeOf(w.net("GET", notices+"?"+query, "")), want)
	}
}

// publishMany makes notifications wait about sent documents, and returns their ids.
func (w *world) publishMany(n int) (ids []string) {
	w.Helper()
	w.mustSend(1, "emulate:silent")
	for range n {
		w.now = w.now.Add(time.Second)
		id, err := w.PublishNotice(NetworkNotice{BumID: bumID(1), ResponseCode: "BusinessInformation", ActionCode: "EligibleForEarlyPayment"})
		kit.Must(w, err)
		ids = append(ids, id)
	}
	return ids
}

func (l noticeList) ids() (all []string) {
	for _, n := range l.Notifications {
		all = append(all, n.AcknowledgementID)
	}
	return all
}

// An acknowledgement shifts the pages after it. What was not acknowledged comes again.
func TestNetwork_PagesShift(t *testing.T) {
	w := newNetworkWorld(t, nil)
	ids := w.publishMany(6)
	first := w.list("page=1&pageSize=2")
	kit.Need(t, first.HasMoreItems && slices.Equal(first.ids(), ids[:2]), "page 1: %+v", first)
	w.net("DELETE", notices+"/"+ids[0], "")
	w.net("DELETE", notices+"/"+ids[1], "")
	second := w.list("page=2&pageSize=2")
	kit.Check(t, slices.Equal(second.ids(), ids[4:6]) && !second.HasMoreItems, "page 2 after two acknowledgements: %+v", second)
	again := w.list("page=1&pageSize=2")
	kit.Check(t, slices.Equal(again.ids(), ids[2:4]), "page 1 again: %+v", again)
	for i := 5; i >= 2; i-- { // in any order, to the last one
		w.net("DELETE", notices+"/"+ids[i], "")
		got := w.list("page=1&pageSize=9").ids()
		kit.Check(t, slices.Equal(got, ids[2:i]), "after %d: %v, want %v", i, got, ids[2:i])
	}
	w.wantNoViolations()
}

// A notification that is acknowledged already is answered as the readings say; an unknown one never was there.
func TestNetwork_RepeatedAcknowledgement(t *testing.T) {
	for reading, want := range map[string]int{"404": 404, "200": 200} {
		w := newNetworkWorld(t, func(c *Config) { c.Readings.Network.RepeatedDelete = reading })
		id := w.publishMany(1)[0]
		for i, want := range []int{200, want} {
			a := w.net("DELETE", notices+"/"+id, "")
			kit.Check(t, a.status == want, "%s, call %d: %+v", reading, i, a)
		}
		if a := w.net("DELETE", notices+"/"+bumID(9), ""); a.status != 404 {
			t.Errorf("unknown: %+v", a)
		}
		w.wantNoViolations()
	}
}

// Times come in seconds or milliseconds, as a text; links lead where the readings say.
func TestNetwork_FormOfNotices(t *testing.T) {
	for times, length := range map[string]int{"seconds": 10, "milliseconds": 13} {
		w := newNetworkWorld(t, func(c *Config) {
			c.Readings.Network.Times, c.Readings.Network.LinksTo = times, "https://other.example/"
		})
		w.mustSend(1, "")
		n := w.list("page=1&pageSize=9").Notifications[0]
		if len(n.NotificationCreated) != length || n.Links[0].Href != "https://other.example/v1.1/notifications/"+n.AcknowledgementID || n.Links[1].Href != "https://other.example/v2/invoices/"+bumID(1) {
			t.Errorf("%s: %+v, want len(n.NotificationCreated) = %v, n.Links[0].Href = %v, n.Links[1].Href = %v", times, n, length, "https://other.example/v1.1/notifications/"+n.AcknowledgementID, "https://other.example/v2/invoices/"+bumID(1))
		}
	}
}

// A posted notification may have the listed fields alone, and only the pairs that a receiver may say.
func TestNetwork_PostedNotices(t *testing.T) {
	w := newNetworkWorld(t, nil)
	id := w.mustPublish(withFiles())
	w.mustSend(1, "")
	good := fmt.Sprintf(`{"bumid":%q,"responseCode":"BusinessReject","actionCode":"DocumentRejected","notificationCreated":"1600000000000","description":"wrong price","additionalActionProperties":[{"name":"a","value":"b"}]}`, id)
	edit := func(old, now string) string { return strings.Replace(good, old, now, 1) }
	for name, row := range map[string]struct{ body, want string }{
		"Good":          {good, "201"},
		"Typed":         {edit(`"bumid"`, `"responseType":"BCN:responsecode-v1","actionType":"BCN:actioncode-v1","documentType":"Invoice","acknowledgementId":"`+bumID(5)+`","bumid"`), "201"},
		"Unlisted":      {edit(`"bumid"`, `"links":[],"bumid"`), "400 004.0002"},
		"NoTime":        {edit(`"notificationCreated":"1600000000000",`, ``), "400 004.0002"},
		"NumberAsTime":  {edit(`"1600000000000"`, `1600000000000`), "400 004.0002"},
		"DateAsTime":    {edit(`1600000000000`, `2020-09-13T12:26:40Z`), "400 004.0002"},
		"ForbiddenPair": {edit(`"DocumentRejected"`, `"Received"`), "400 004.0002"},
		"NoAction":      {edit(`"actionCode":"DocumentRejected",`, ``), "400 004.0002"},
		"OtherType":     {edit(`"bumid"`, `"documentType":"CreditNode","bumid"`), "400 004.0002"},
		"Capitals":      {edit(id, strings.ToUpper(id)), "400 004.0003"},
		"UnknownBumID":  {edit(id, bumID(7)), "404 003.0001"},
		"SentDocument":  {edit(id, bumID(1)), "403"},
		"NoJSON":        {"{", "400 004.0004"},
		"Null":          {"null", "400 004.0004"},
	} {
		kit.Want(t, name, w.codeOf(w.net("POST", notices, row.body)), row.want)
	}
	kit.Want(t, "plain text", w.codeOf(w.net("POST", notices, good, "Content-Type: text/plain")), "415 004.0004")
	n := w.ReceivedDocuments()[0].Notified
	kit.Check(t, len(n) == 2 && n[0].Description+n[1].Description == "wrong pricewrong price", "kept: %+v", n)
}

// A word about a received document is said once. A second one that no person decided on is a violation, also after a call that was not done or
// not answered, and after a restart; a confirmation of the receipt may be repeated.
func TestNetwork_I29_SecondWord(t *testing.T) {
	post := func(w *world, id, response, action string) int {
		return w.net("POST", notices, fmt.Sprintf(`{"bumid":%q,"responseCode":%q,"actionCode":%q,"notificationCreated":"1600000000"}`, id, response, action)).status
	}
	kit.Rows(t, map[string]Fault{"Answered": {}, "NotDone": {Kind: Status}, "DoneAndLost": {Kind: Abort, IsAfterWork: true}}, func(t *testing.T, fault Fault) {
		w := newNetworkWorld(t, nil)
		id := w.mustPublish(withFiles())
		for range 2 {
			post(w, id, "TechnicalAccept", "DeliveryConfirmed")
		}
		w.setRule("network-notify", fault)
		post(w, id, "BusinessAccept", "DocumentAccepted")
		w.setRule("", Fault{})
		w.wantNoViolations()
		kit.Must(t, w.PermitWord(id))
		kit.Want(t, "permitted", post(w, id, "BusinessAccept", "DocumentAccepted"), 201)
		w.wantNoViolations()
		w.restart()
		post(w, id, "BusinessReject", "DocumentRejected")
		w.wantViolation("no person decided so")
		said := w.ReceivedDocuments()[0].Notified
		last := said[len(said)-1]
		kit.Check(t, last.ActionCode == "DocumentRejected" && last.By == "trader", "kept: %+v", last)
	})
}

// What is acknowledged too early, or is nobody's here, is a violation.
func TestNetwork_AcknowledgeViolations(t *testing.T) {
	for name, row := range map[string]struct {
		fetch int // of document, first file, second file
		want  string
	}{"Nothing": {0, "before its document"}, "OnlyDocument": {1, "before file"}, "OneFile": {2, "before file"}} {
		w := newNetworkWorld(t, nil)
		id := w.mustPublish(withFiles())
		d := w.ReceivedDocuments()[0]
		for _, path := range []string{invoicesPath + "/" + id, "/v1/files/" + d.Files[0].ID, "/v1/files/" + d.Files[1].ID}[:row.fetch] {
			w.net("GET", path, "")
		}
		w.net("DELETE", notices+"/"+w.Notices()[0].AcknowledgementID, "")
		if w.wantViolation(row.want); !w.Notices()[0].IsAcknowledged {
			t.Errorf("%s: not acknowledged", name)
		}
	}
	w := newNetworkWorld(t, nil)
	foreign := kit.Value(w.PublishNotice(NetworkNotice{BumID: bumID(66), ResponseCode: "TechnicalAccept", ActionCode: "Delivered"}))(t)
	w.net("DELETE", notices+"/"+foreign, "")
	w.wantViolation("is not the client's")
}

// An answer that a fault spoils sends nothing: what was cut, garbled or lost does not count as fetched.
func TestNetwork_SpoiledFetchDoesNotCount(t *testing.T) {
	for _, kind := range []Kind{Cut, Garble, Truncate, Empty, Status, Abort, HTML, Coded} {
		w := newNetworkWorld(t, nil)
		id := w.mustPublish(withFiles())
		file := w.ReceivedDocuments()[0].Files[0].ID
		for _, isAfter := range []bool{false, true} {
			w.setRule("", Fault{Kind: kind, IsAfterWork: isAfter})
			w.net("GET", invoicesPath+"/"+id, "")
			w.net("GET", "/v2/files/"+file, "")
		}
		d := w.ReceivedDocuments()[0]
		kit.Check(t, !d.WasSent && !d.Files[0].WasSent, "%s: %+v, want not d.WasSent, not d.Files[0].WasSent", kind, d)
		w.setRule("", Fault{})
		w.net("GET", invoicesPath+"/"+id, "")
		w.net("GET", "/v2/files/"+file, "")
		d = w.ReceivedDocuments()[0]
		kit.Check(t, d.WasSent && d.Files[0].WasSent, "after %s: %+v", kind, d)
	}
}

// setRule makes every call of an op fail; of all ops where it is empty.
func (w *world) setRule(op string, f Fault) {
	w.Helper()
	kit.Must(w, w.SetFaults(Faults{Hook: func(o string, _ int) Fault {
		if op == "" || op == o {
			return f
		}
		return Fault{}
	}}))
}
