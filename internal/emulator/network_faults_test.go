package emulator

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// A lost call has both forms: not stored, and stored without an answer. The repeat tells which it was.
func TestNetwork_LostAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		fault  Fault
		stored bool
	}{
		"Abort": {Fault{Kind: Abort}, false}, "AbortDone": {Fault{Kind: Abort, IsAfterWork: true}, true}, "Refuse": {Fault{Kind: Refuse}, false},
		"Status": {Fault{Kind: Status, Status: 502}, false}, "StatusDone": {Fault{Kind: Status, IsAfterWork: true}, true},
		"Coded": {Fault{Kind: Coded}, false}, "CodedDone": {Fault{Kind: Coded, IsAfterWork: true}, true}, "HTML": {Fault{Kind: HTML}, false},
	} {
		w := newNetworkWorld(t, nil)
		w.setRule("network-send", row.fault)
		w.net("POST", invoicesPath+"/"+bumID(1), invoice(""))
		w.setRule("", Fault{})
		want := "200"
		if row.stored {
			want = "400 003.0038"
		}
		kit.Want(t, name+": the repeat", w.codeOf(w.net("POST", invoicesPath+"/"+bumID(1), invoice(""))), want)
		sent := w.SentDocuments()
		kit.Check(t, len(sent) == 1 && sent[0].TimesAccepted == 1, "%s: sent %+v", name, sent)
		w.wantNoViolations()
	}
}

// Other bytes under a bumId are a violation, whatever became of the first ones: accepted, refused, or lost on the way.
func TestNetwork_OtherBytes(t *testing.T) {
	type row struct {
		fault Fault
		first string
	}
	kit.Rows(t, map[string]row{
		"Accepted": {Fault{}, invoice("")}, "Refused": {Fault{}, `{"data":{}}`}, "LostBefore": {Fault{Kind: Abort}, invoice("")},
		"LostAfter": {Fault{Kind: Abort, IsAfterWork: true}, invoice("")}, "Error": {Fault{Kind: Coded}, invoice("")},
	}, func(t *testing.T, row row) {
		w := newNetworkWorld(t, nil)
		w.setRule("network-send", row.fault)
		w.net("POST", invoicesPath+"/"+bumID(1), row.first)
		w.setRule("", Fault{})
		w.net("POST", invoicesPath+"/"+bumID(1), row.first)
		w.wantNoViolations()
		w.restart()
		w.net("POST", invoicesPath+"/"+bumID(1), invoice("other"))
		w.wantViolation("other bytes posted under bumId " + bumID(1))
	})
	w := newNetworkWorld(t, nil)
	w.mustSend(1, "")
	w.net("POST", "/v2/creditNotes/"+bumID(1), invoice("")) // the same bytes as another kind of document
	w.wantViolation("other bytes")
	w = newNetworkWorld(t, nil)
	kit.Want(t, "the bumId of a received document", w.codeOf(w.net("POST", invoicesPath+"/"+w.mustPublish(withFiles()), invoice(""))), "400 003.0038")
	w.wantViolation("which is that of a received document")
}

// A number that another client has is refused as in use, and is no fault of this client. Nobody here can fetch that document.
func TestNetwork_NumberOfAnother(t *testing.T) {
	w := newNetworkWorld(t, nil)
	kit.Must(t, w.OccupyBumID(bumID(1)))
	w.restart()
	kit.Want(t, "send", w.codeOf(w.net("POST", invoicesPath+"/"+bumID(1), invoice(""))), "400 003.0038")
	kit.Want(t, "fetch", w.codeOf(w.net("GET", invoicesPath+"/"+bumID(1), "")), "404 003.0001")
	_, err := w.PublishReceived(ReceivedDocument{BumID: bumID(1), Data: []byte(`{}`)})
	kit.Check(t, err != nil, "the number was given a second time")
	w.wantNoViolations()
}

// A sender may fetch what it sent, or not: a reading says so.
func TestNetwork_FetchSent(t *testing.T) {
	for reading, want := range map[string]string{"served": "200", "refused": "403", "unknown": "404 003.0001"} {
		w := newNetworkWorld(t, func(c *Config) { c.Readings.Network.FetchSent, c.Readings.Network.SendAnswer = reading, "json" })
		ref := w.mustStore(bumID(1), "a.xml", "<a/>")
		if a := w.net("POST", invoicesPath+"/"+bumID(1), invoice("", ref)); a.status != 201 || !strings.Contains(a.body, bumID(1)) {
			t.Errorf("send: %+v", a)
		}
		a := w.net("GET", invoicesPath+"/"+bumID(1), "")
		got := w.codeOf(a)
		kit.Check(t, got == want && (got != "200" || strings.Contains(a.body, `"refId":"`+ref+`"`)), "%s: %+v", reading, a)
	}
}

// A code of the network can be asked for by name, also in the words of a rule.
func TestNetwork_CodedFault(t *testing.T) {
	r := kit.Value(ParseRule("network-send:Error.001.0012:1"))(t)
	w := newNetworkWorld(t, func(c *Config) { c.Faults.Rules = []Rule{r} })
	kit.Want(t, "codeOf", w.codeOf(w.net("POST", invoicesPath+"/"+bumID(1), invoice(""))), "403 001.0012")
	if r, err := ParseRule("network-fetch:Error.003.0032-done:0.5"); err != nil || !r.Fault.IsAfterWork || r.Fault.Code != "Error.003.0032" {
		t.Errorf(`%+v, %v, want no error, r.Fault.IsAfterWork, r.Fault.Code = "Error.003.0032"`, r, err)
	}
	drawn := map[string]bool{}
	w.setRule("", Fault{Kind: Coded})
	for range 60 {
		drawn[w.codeOf(w.net("GET", "/v2/files/x", ""))] = true
	}
	kit.Check(t, len(drawn) == 3 && drawn["500 003.0032"], "drawn: %v", drawn)
	w.setRule("", Fault{Kind: Coded, Code: "Error.001.0010", Status: 503})
	kit.Want(t, "with a status", w.codeOf(w.net("GET", "/v2/files/x", "")), "503 001.0010")
}

// The faults of pages: repeated, empty and short pages, a lie about more, another order, and a notification that comes twice.
func TestNetwork_FaultsOfPages(t *testing.T) {
	at := func(w *world, kind Kind, query string) noticeList {
		w.setRule("network-notices", Fault{Kind: kind})
		defer w.setRule("", Fault{})
		return w.list(query)
	}
	w := newNetworkWorld(t, nil)
	ids := w.publishMany(4)
	if l := at(w, RepeatPage, "page=2&pageSize=2"); !slices.Equal(l.ids(), ids[:2]) || !l.HasMoreItems {
		t.Errorf("repeated page: %+v", l)
	}
	if l := at(w, EmptyPage, "page=1&pageSize=2"); len(l.Notifications) != 0 || !l.HasMoreItems {
		t.Errorf("empty page: %+v", l)
	}
	if l := at(w, ShortPage, "page=1&pageSize=4"); !slices.Equal(l.ids(), ids[:1]) || !l.HasMoreItems {
		t.Errorf("short page: %+v", l)
	}
	if l, whole := at(w, WrongMore, "page=1&pageSize=2"), at(w, WrongMore, "page=1&pageSize=4"); l.HasMoreItems || !whole.HasMoreItems {
		t.Errorf("wrong more: %+v, %+v", l, whole)
	}
	if l := at(w, SwapNotices, "page=1&pageSize=4"); !slices.Equal(l.ids(), []string{ids[3], ids[2], ids[1], ids[0]}) {
		t.Errorf("swapped: %+v", l)
	}
	l := at(w, RepeatNotice, "page=1&pageSize=4")
	kit.Need(t, len(l.Notifications) == 5 && !slices.Contains(ids, l.ids()[4]) && l.Notifications[4].BumID == bumID(1),
		"repeated notification: %+v", l)
	w.restart()
	w.setRule("", Fault{})
	again := w.list("page=1&pageSize=9")
	kit.Check(t, slices.Equal(again.ids(), l.ids()), "after a restart: %+v", again)
	w.wantNoViolations()
}

// A list can hide what waits, and can show again what was acknowledged, with the same number.
func TestNetwork_HiddenAndOldNotices(t *testing.T) {
	w := newNetworkWorld(t, nil)
	w.mustSend(1, "")
	w.now = w.now.Add(time.Hour)
	w.setRule("network-notices", Fault{Kind: HideNotices})
	l := w.list("page=1&pageSize=4")
	kit.Check(t, len(l.Notifications) == 0 && !l.HasMoreItems, "hidden: %+v", l)
	w.setRule("network-notices", Fault{Kind: ShowOldOnes})
	first := w.list("page=1&pageSize=4")
	kit.Need(t, len(first.Notifications) == 2, "nothing was acknowledged yet: %+v", first)
	w.net("DELETE", notices+"/"+first.ids()[0], "")
	l = w.list("page=1&pageSize=4")
	kit.Check(t, slices.Equal(l.ids(), []string{first.ids()[1], first.ids()[0]}), "after the acknowledgement: %+v", l)
	w.restart()
	w.setRule("network-notices", Fault{Kind: ShowOldOnes})
	kit.Want(t, "of another type of documents",
		len(w.list("page=1&pageSize=4&documentType=CreditNode").Notifications), 0)
	w.wantNoViolations()
}

// One notification about a document can be listed late, with the time at which it was made.
func TestNetwork_LateNotice(t *testing.T) {
	w := newNetworkWorld(t, nil)
	w.setRule("network-send", Fault{VisibleAfter: 50 * time.Hour})
	w.mustSend(1, "")
	w.setRule("", Fault{})
	w.now = w.now.Add(49 * time.Hour)
	early := len(w.list("page=1&pageSize=4").Notifications)
	w.restart()
	w.now = w.now.Add(2 * time.Hour)
	all := w.list("page=1&pageSize=4")
	if early != 1 || len(all.Notifications) != 2 || w.Notices()[0].At != w.Notices()[1].At && w.now.Sub(w.Notices()[1].At) < 50*time.Hour {
		t.Errorf("%d early, then %+v; %+v", early, all, w.Notices())
	}
	for _, at := range all.ids() {
		a := w.net("DELETE", notices+"/"+at, "")
		kit.Check(t, a.status == 200, "acknowledge: %+v", a)
	}
	w.wantNoViolations()
}

// A body that ends early stores no file, and a fault of uploads strikes files as well.
func TestNetwork_CutFile(t *testing.T) {
	for _, kind := range []Kind{CutRequest, Early} {
		w := newNetworkWorld(t, nil)
		w.setRule("network-file", Fault{Kind: kind, IsAfterWork: true})
		a := w.postFile(bumID(1), "imageFile", "a.pdf", strings.Repeat("x", 5000))
		kit.Check(t, (kind != CutRequest || a.err != nil) && (kind != Early || a.body == ""), "%s: %+v", kind, a)
		kit.Want(t, string(kind)+": a file stored", len(w.Server.state.network.files), 0)
		left, err := filepath.Glob(filepath.Join(w.objectsDir(), "*"))
		kit.Check(t, err == nil && len(left) == 0, "%s: left %q, %v", kind, left, err)
	}
}

// Everything is known after a restart: documents, files, notifications still to come, and what was posted and acknowledged.
func TestNetwork_RestartForgetsNothing(t *testing.T) {
	w := newNetworkWorld(t, nil)
	w.mustSend(1, "emulate:late-reject", w.mustStore(bumID(1), "a.pdf", "%PDF"))
	w.mustSend(2, "emulate:invalid")
	id := w.mustPublish(withFiles())
	w.net("GET", invoicesPath+"/"+id, "")
	w.net("GET", "/v1/files/"+w.ReceivedDocuments()[0].Files[1].ID, "")
	w.net("POST", notices, fmt.Sprintf(`{"bumid":%q,"responseCode":"TechnicalAccept","actionCode":"DeliveryConfirmed","notificationCreated":"1600000000"}`, id))
	w.net("DELETE", notices+"/"+w.Notices()[0].AcknowledgementID, "")
	kit.Must(t, w.SetDirectory([]DirectoryLine{{SIREN: "123456789"}}))
	sent, received, all, waiting := w.SentDocuments(), w.ReceivedDocuments(), w.Notices(), w.pairs()
	w.restart()
	// The monotonic part of a time does not survive JSON, so times are compared as texts.
	for name, both := range map[string][2]any{"sent": {sent, w.SentDocuments()}, "received": {received, w.ReceivedDocuments()}, "notifications": {all, w.Notices()}, "waiting": {waiting, w.pairs()}} {
		kit.Check(t, fmt.Sprintf("%+v", both[0]) == fmt.Sprintf("%+v", both[1]),
			"%s before %+v\nafter %+v", name, both[0], both[1])
	}
	kit.Holds(t, "the answer", w.net("GET", "/v1/directory/fr?siren=123456789", "").body, "123456789")
	w.now = w.now.Add(80 * time.Hour)
	w.wantPairs("TechnicalAccept/ReceivedForProcessing", "TechnicalAccept/Delivered", "TechnicalReject/InvalidContent", "TechnicalReject/Undelivered")
	w.wantNoViolations()
}

// The directory gives the lines that have all that is asked for; every property may be null.
func TestNetwork_Directory(t *testing.T) {
	lines := []DirectoryLine{
		{SIREN: "123456789", Name: "Acme", AddressingIdentifier: "123456789", AdministrativeStatus: "A"},
		{SIREN: "123456789", SIRET: "12345678900011", RoutingIdentifier: "ROUTE1", AddressingIdentifier: "123456789_12345678900011", City: "Lyon"},
		{SIREN: "987654321", DateTo: "2020-11-19"}, {SIREN: "987654321", DateTo: "2020-11-20", IsLegalUnitUndisclosed: true},
	}
	for reading, ended := range map[string]int{"valid": 1, "all": 2} {
		w := newNetworkWorld(t, func(c *Config) { c.Network.Directory, c.Readings.Network.Directory = lines, reading })
		for query, want := range map[string]any{"siren=123456789": 2, "siret=12345678900011": 1, "siren=987654321": ended, "siren=123456789&routing_identifier=ROUTE1": 1,
			"siren=111111111": 0, "siren=12": "422 004.0002", "siret=123456789": "422 004.0002", "": "422 004.0002", "name=acme": "422 004.0002", "routing_identifier=R": "422 004.0002"} {
			a := w.net("GET", "/v1/directory/fr?"+query, "")
			var got any = w.codeOf(a)
			if got == "200" {
				var list []map[string]any
				w.decode(a, &list)
				got = len(list)
			}
			kit.Want(t, fmt.Sprintf("%s, %s", reading, query), got, want)
		}
	}
}

// The journal holds no credential and no content of a file or a document.
func TestNetwork_JournalHoldsNoContent(t *testing.T) {
	w := newNetworkWorld(t, nil)
	w.mustSend(1, "the note of a document", w.mustStore(bumID(1), "a.pdf", "the content of a file"))
	w.mustPublish(withFiles())
	raw := kit.Value(os.ReadFile(filepath.Join(w.cfg.Dir, "journal.jsonl")))(t)
	kit.Lacks(t, "the text", string(raw), "n/et=secret", "the note of", "the content of", "from afar", http.CanonicalHeaderKey("authorization"))
}

// I5 durability, on the service's side: what was answered is there after kill -9.
func TestKillLosesNoNetworkDocument(t *testing.T) {
	survivesKill(t, func(w *world, base string, answered map[string]bool) bool {
		id := bumID(len(answered))
		a := wireSend(t, w.request("POST", base+invoicesPath+"/"+id, invoice(""), asUser, requestIDLine, "Content-Type: application/json"))
		answered[id] = a.status == 200
		return a.err == nil
	}, func(w *world, id string, accepted bool) (known any, ok bool) {
		for _, d := range w.SentDocuments() {
			if d.BumID == id {
				return d, !accepted || d.SHA256 == digest([]byte(invoice("")))
			}
		}
		return nil, !accepted
	})
}

// A document to a company in France that no whole answer named as listed in the 24 hours before is a violation, once. What counts is when its
// first file came, and a restart forgets nothing of it.
func TestNetwork_DocumentToACompanyThatIsNotListed(t *testing.T) {
	const ask = "/v1/directory/fr?siren="
	listed := []DirectoryLine{{SIREN: "123456789"}, {SIREN: "987654321", DateTo: "2020-11-19"}}
	for name, row := range map[string]struct {
		before func(w *world)
		siren  string
		want   bool // a violation
	}{
		"Asked":        {func(w *world) { w.net("GET", ask+"123456789", "") }, "123456789", false},
		"NeverAsked":   {func(*world) {}, "123456789", true},
		"AskedLongAgo": {func(w *world) { w.net("GET", ask+"123456789", ""); w.now = w.now.Add(24*time.Hour + 1) }, "123456789", true},
		"LineEnded":    {func(w *world) { w.net("GET", ask+"987654321", "") }, "987654321", true},
		"NoLine":       {func(w *world) { w.net("GET", ask+"111111111", "") }, "111111111", true},
		"LineCameLater": {func(w *world) {
			w.net("GET", ask+"111111111", "")
			kit.Must(w, w.SetDirectory([]DirectoryLine{{SIREN: "111111111"}}))
			w.net("GET", ask+"111111111", "")
		}, "111111111", false},
		"Garbled": {func(w *world) { w.net("GET", ask+"123456789", "") }, "123456789", true},
		"FileInTime": {func(w *world) {
			w.net("GET", ask+"123456789", "")
			w.mustStore(bumID(1), "a.pdf", "%PDF")
			w.now = w.now.Add(48 * time.Hour)
			w.restart()
		}, "123456789", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNetworkWorld(t, func(c *Config) {
				c.Network.Directory, c.Network.RequiresListed, c.Readings.Network.Directory = listed, true, "all"
				c.Faults.Hook = func(op string, _ int) Fault {
					if op == "network-directory" && name == "Garbled" {
						return Fault{Kind: Garble}
					}
					return Fault{}
				}
			})
			row.before(w)
			for range 2 {
				w.net("POST", invoicesPath+"/"+bumID(1), strings.Replace(invoice(""), `"7300010000001","schemeId":"GLN"`, fmt.Sprintf(`%q,"schemeId":"FR:ORGNR"`, row.siren), 1), "Content-Type: application/json")
			}
			v := w.Violations()
			kit.Check(t, len(v) == map[bool]int{true: 1}[row.want] && (!row.want || strings.Contains(v[0], "goes to SIREN "+row.siren)), "violations: %q", v)
		})
	}
}
