// This test is inside the package: it gives every surface a state of the daemon
// that is out of reach of a real one within a test, over a real ledger.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/page"
	"vaultd/internal/present"
	"vaultd/internal/report"
	"vaultd/internal/selfcheck"
	"vaultd/internal/spool"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
	"vaultd/internal/web"
)

var needNoon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

// needWorld is a ledger, and what a daemon says of itself.
type needWorld struct {
	t      *testing.T
	ledger *fill.Ledger
	v      view
	state  daemon.State
	drop   dropwork.State
	item   *fill.Item                     // the entry, where one needs attention
	spoil  func(s *present.StatusSummary) // out of reach of an intact ledger
	sel    report.Selection
}

func newNeedWorld(t *testing.T) *needWorld {
	t.Helper()
	w := &needWorld{t: t, ledger: fill.New(t, boltledger.Config{Location: time.UTC}, ledger.Info{ID: "L-1", Environment: "test", BaseURL: "https://vault.example", Created: needNoon.Add(-72 * time.Hour)})}
	w.v = view{cfg: loadInside(t, `service: {base_url: https://vault.example, auth: {method: basic, username: u, secret_file: /s}}
state_dir: `+w.ledger.Dir+`
time_zone: UTC
pdf: {base_url: "https://vault.example", auth: {method: basic, username: u, secret_file: /s}}
network: {base_url: "https://vault.example", auth: {method: basic, username: u, secret_file: /s}}
extracts: {base_url: "https://vault.example", custody: /srv/custody, auth: {method: basic, username: u, secret_file: /s}}
drops:
  - {name: acme-in, path: /srv/acme-in, vault: V-1}
  - {name: ap-scans, path: /srv/ap-scans, route: pdf, receiving: ap@in.example, notify: clerk@acme.example}
  - {name: out, path: /srv/out, route: network}
`), ledger: w.ledger.Ledger, Clock: present.Clock{Now: needNoon, Location: time.UTC}}
	w.drop = dropwork.State{Name: "acme-in", Free: 1e12, RemindAfter: time.Hour}
	w.v.state = func() daemon.State { s := w.state; s.Drops = append(s.Drops, w.drop); return s }
	return w
}

// add adds an item by a route.
func (w *needWorld) add(r ledger.Route) *fill.Item {
	w.item = w.ledger.Add(fill.Item{Name: "Huber 88", Route: r})
	return w.item
}

// hear lets the network say something of the item.
func (w *needWorld) hear(response, action string) {
	e := w.item.Entry()
	w.item.Apply(needNoon, ledger.NotificationSeen{Notification: archive.Notification{AcknowledgementID: archive.AcknowledgementID(action), Document: e.OwnNumber(), Response: response, Action: action}})
}

// end brings an item to its good end.
func (w *needWorld) end(r ledger.Route) *fill.Item {
	i := w.add(r)
	if at := needNoon.Add(-time.Hour); r.IsAsked() {
		i.Archive(at, time.Minute)
	} else {
		i.Deliver(at, time.Minute)
	}
	return i
}

func (w *needWorld) arrive(evs ...arrival.Event) {
	w.t.Helper()
	_, err := w.ledger.ApplyArrival(w.t.Context(), arrival.Change{Key: archive.NewKey(needNoon), Events: evs, At: archive.Instant{Wall: needNoon.Add(-48 * time.Hour)}})
	kit.Must(w.t, err)
}

// keepForeign keeps a notification about a document that the ledger does not know, as where nothing is received.
func (w *needWorld) keepForeign() {
	w.t.Helper()
	raw := []byte(`{"bumid": "bum-9", "acknowledgementId": "ack-9", "documentType": "Invoice", "responseCode": "BusinessInformation", "actionCode": "DiscountCreditNoteAvailable", "notificationCreated": "1795180000"}`)
	n, err := networkapi.ReadNotification(raw)
	kit.Must(w.t, err)
	kit.Value(w.ledger.KeepNotices(w.t.Context(), archive.Instant{Wall: needNoon}, []ledger.OtherNotice{{Notification: n}}))(w.t)
}

// compare journals a comparison with the archive's index.
func (w *needWorld) compare(outcome string) {
	w.ledger.Mark(ledger.Mark{Name: ledger.MarkCompared, Vault: "V-1", By: ledger.Operator{UID: 1001}, At: needNoon, Cause: ledger.ComparedCause(outcome, "5 of 5 documents", 1)}, "")
}

// I15, I26: what a comparison with the archive's index found stays a need until one agrees. One that concludes nothing ends nothing.
func TestNeeds_I15_I26_IndexDiffersUntilItAgrees(t *testing.T) {
	w := newNeedWorld(t)
	for _, step := range []struct {
		outcome string
		needs   int
	}{{ledger.CompareIncomplete, 0}, {ledger.CompareDiffers, 1}, {ledger.CompareIncomplete, 1}, {ledger.CompareMissing, 1}, {ledger.CompareSame, 0}, {ledger.CompareDiffers, 1}} {
		w.compare(step.outcome)
		seen := w.look()
		kit.Want(t, "needs of status after "+step.outcome, len(seen["status"]), step.needs)
		kit.Want(t, "needs of the audit after "+step.outcome, len(seen["audit"]), step.needs)
		found := kit.Value(w.ledger.Verify(t.Context()))(t)
		kit.Want(t, "problems of the ledger", len(found), 0)
	}
	s := kit.Value(w.v.collectStatus(t.Context()))(t)
	kit.Want(t, "the name", strings.Join(s.Needs[0].Names, "; "), "vault V-1, compared 13:32: 5 of 5 documents, differences 1")
}

// I26, I29: word of an unknown document that calls a person names what to do, and ends with an act that is journaled.
func TestNotices_I26_I29_ClosedByAPerson(t *testing.T) {
	w := newNeedWorld(t)
	w.keepForeign()
	w.keepForeign() // the network lists it again and again
	s, err := w.v.collectStatus(t.Context())
	kit.Must(t, err)
	kit.Want(t, "needs", len(s.Needs), 1)
	kit.Holds(t, "the need", strings.Join(s.Needs[0].Names, ""), "ack-9: about bum-9, which this ledger does not know: a credit note about a discount waits")
	said, failed := asks(func(a *app) error { return a.closeNotice(t.Context(), w.v, "ack-9", "dropped by hand") })
	kit.Want(t, "closing fails: "+said, failed, false)
	_, failed = asks(func(a *app) error { return a.closeNotice(t.Context(), w.v, "ack-9", "again") })
	kit.Want(t, "closing it again fails", failed, true)
	w.keepForeign()
	s, err = w.v.collectStatus(t.Context())
	kit.Must(t, err)
	kit.Want(t, "needs after the act", len(s.Needs), 0)
}

// needCases are ways into each row of the table of needs.
var needCases = []struct {
	what  string
	enter func(w *needWorld)
}{
	{"ledger-lost", func(w *needWorld) { w.state.LostLedger = "ledger.db was removed" }},
	{"taken-over", func(w *needWorld) { w.state.TakenOverBy = 7 }},
	{"safe-mode", func(w *needWorld) { w.ledger.Mark(ledger.Mark{Name: ledger.MarkRestored, At: needNoon}, "") }},
	{"damaged", func(w *needWorld) { w.state.Check = selfcheck.Result{At: needNoon, Ledger: []string{"line 7"}} }},
	{"files", func(w *needWorld) { w.state.Check = selfcheck.Result{At: needNoon, Files: []string{"a receipt"}} }},
	{"check", func(w *needWorld) { w.state.Check = selfcheck.Result{At: needNoon, Unread: []string{"a receipt"}} }},
	{"check", func(w *needWorld) {
		w.end(ledger.Vault)
		w.drop.Scan.KeptSince = needNoon.Add(-73 * time.Hour)
	}},
	{"balance", func(w *needWorld) { w.spoil = func(s *present.StatusSummary) { s.Balance.Agrees = false } }},
	{"configuration", func(w *needWorld) { w.v.reloadFault = "line 3: unknown key" }},
	{"binding", func(w *needWorld) { w.v.state, w.v.cfg.Service.Environment = nil, "production" }},
	{"not-running", func(w *needWorld) { w.add(ledger.Vault).Send(needNoon); w.item, w.v.state = nil, nil }},
	{"paused", func(w *needWorld) {
		w.state.Pauses = []ingest.Pause{{Target: ingest.RegisterTarget("V-1"), Since: needNoon.Add(-31 * time.Second), Cause: ledger.Cause{Code: "http-503", Text: "503"}}}
	}},
	{"drop-place", func(w *needWorld) {
		w.drop.Foreign = []drop.PlaceFault{{Text: "_archived is anna's", Do: "rename it", IsForeign: true}}
	}},
	{"drop-full", func(w *needWorld) { w.drop.Free = 4096 }},
	{"drop-paused", func(w *needWorld) { w.drop.Paused = "it is not there" }},
	{"drop-stalled", func(w *needWorld) {
		w.state.Progress.Stalls = []daemon.Stall{{What: "drop acme-in", Since: needNoon.Add(-time.Hour), Drop: true}}
	}},
	{"notices", func(w *needWorld) {
		w.state.Incoming = []present.IncomingFault{{What: "notices", Text: "they do not come in"}}
	}},
	{"extracts-paused", func(w *needWorld) {
		w.state.Incoming = []present.IncomingFault{{What: "extracts-paused", Text: "they do not come in"}}
	}},
	{"disk", func(w *needWorld) { w.state.Spool.IsBlocked = true }},
	{"not-taken", func(w *needWorld) {
		w.drop.Watch.NotTaken = []watch.NotTakenGroup{{Reason: watch.NoRight, Count: 1, Items: []watch.NotTakenItem{{Name: "Kern 6"}}}}
		w.drop.Scan = ledger.Scan{Drop: "acme-in", LastScan: needNoon, Pending: []ledger.PendingItem{{Name: "Kern 7", Reason: string(watch.LooseFile), Since: needNoon.Add(-5 * time.Hour), NeedsPerson: true}}}
	}},
	{"clock", func(w *needWorld) {
		i := w.add(ledger.Vault)
		i.Seal(needNoon)
		ticket := fill.Ticket("bum-1", needNoon, ledger.Vault)
		ticket.Ticket.Date = needNoon.Add(5 * time.Minute)
		i.Apply(needNoon, ledger.RegisterIntended{}, ticket)
		w.item = nil
	}},
	{"spool-full", func(w *needWorld) {
		w.state.Spool.Waiting = []spool.Waiting{{Queue: "vault V-1", Since: needNoon.Add(-11 * time.Minute), Used: 60e6, Share: 100e6, Next: 50e6}}
	}},
	{"notices-ask", func(w *needWorld) { w.keepForeign() }},
	{"extracts", func(w *needWorld) {
		w.arrive(arrival.Listed{Kind: arrival.Extract, Extract: archive.Extract{ID: "4711", Type: archive.DeltaExtract, Made: needNoon, Files: 1}}, arrival.LeftOut{})
	}},
	{"received", func(w *needWorld) {
		w.arrive(arrival.DocumentAnnounced{Document: "bum-2", Kind: archive.NetworkInvoice, Notice: "ack-2"})
	}},
	{"overdue", func(w *needWorld) { w.add(ledger.Vault).Send(needNoon.Add(-49 * time.Hour)) }},
	{"overdue", func(w *needWorld) { w.add(ledger.Network).Send(needNoon.Add(-49 * time.Hour)) }},
	{"unreadable", func(w *needWorld) {
		w.add(ledger.PDF).Apply(needNoon, ledger.Postponed{Cause: ledger.Cause{Code: ledger.CauseCannotBeRead}})
	}},
	{"rejected", func(w *needWorld) { w.add(ledger.Vault).Refuse(needNoon, ledger.Cause{Code: "x"}) }},
	{"rejected", func(w *needWorld) { w.add(ledger.Network).Refuse(needNoon, ledger.Cause{Code: "x"}) }},
	{"quarantined", func(w *needWorld) { w.add(ledger.Vault).Quarantine(needNoon, ledger.Cause{Code: "x"}) }},
	{"quarantined", func(w *needWorld) { w.add(ledger.PDF).Quarantine(needNoon, ledger.Cause{Code: "x"}) }},
	{"undecided", func(w *needWorld) {
		i := w.add(ledger.Vault)
		i.Change = func(ev *ledger.Sealed) { ev.SameContent = archive.Key{1} }
		i.Seal(needNoon)
		i.Apply(needNoon, ledger.Held{})
	}},
	{"held", func(w *needWorld) { w.add(ledger.Vault).Apply(needNoon, ledger.Held{}) }},
	{"kept-differs", func(w *needWorld) {
		w.end(ledger.Vault).Apply(needNoon, ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged}})
	}},
	{"delivered-differs", func(w *needWorld) {
		w.end(ledger.PDF).Apply(needNoon, ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged}})
	}},
	{"sent-differs", func(w *needWorld) {
		w.end(ledger.Network).Apply(needNoon, ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged}})
	}},
	{"contradicted", func(w *needWorld) {
		w.end(ledger.Vault).Apply(needNoon, fill.Seen("bum-Huber 88", archive.Failed, needNoon))
	}},
	{"index-differs", func(w *needWorld) { w.compare(ledger.CompareMissing) }},
	{"rejected-late", func(w *needWorld) { w.end(ledger.Network); w.hear("TechnicalReject", "Undelivered") }},
	{"download-differs", func(w *needWorld) {
		i := w.end(ledger.Vault)
		i.Apply(needNoon, ledger.ContentDiffered{Remote: i.Entry().ArchivedRemote})
	}},
	{"rejected-by-recipient", func(w *needWorld) { w.end(ledger.Network); w.hear("BusinessReject", "DocumentRejected") }},
	{"asked-by-service", func(w *needWorld) { w.end(ledger.Network); w.hear("BusinessAccept", "RequestForEarlyPayment") }},
	{"recipient-not-listed", func(w *needWorld) {
		w.add(ledger.Network).Seal(needNoon)
		w.item.Apply(needNoon, ledger.Postponed{Cause: ledger.Cause{Code: ledger.CauseRecipientNotListed}})
	}},
	{"copy-waits", func(w *needWorld) {
		i := w.add(ledger.Network)
		i.Send(needNoon)
		i.Apply(needNoon, i.Accepted())
		w.hear("TechnicalAccept", "Delivered")
		i.Apply(needNoon, ledger.Postponed{Cause: ledger.Cause{Code: ledger.CauseCopyWaits}})
	}},
	{"archived-twice", func(w *needWorld) {
		i := w.add(ledger.Vault)
		i.Send(needNoon)
		i.Apply(needNoon, ledger.UploadRefused{}, ledger.RegisterIntended{}, fill.Ticket("again", needNoon, ledger.Vault), ledger.UploadIntended{}, i.Accepted(),
			fill.Seen("again", archive.Successful, needNoon), fill.Seen("bum-Huber 88", archive.Successful, needNoon))
	}},
	{"not-compared", func(w *needWorld) {
		i := w.add(ledger.Vault)
		i.Send(needNoon)
		i.Apply(needNoon, ledger.UploadRefused{}, ledger.RegisterIntended{}, fill.Ticket("again", needNoon, ledger.Vault), ledger.UploadIntended{WithoutMD5: true}, ledger.UploadUnanswered{},
			fill.Seen("again", archive.Successful, needNoon))
		i.Place(needNoon, "_archived/2026-11/"+i.Name)
	}},
	{"receipt-alone", func(w *needWorld) {
		i := w.add(ledger.Vault)
		i.Seal(needNoon)
		i.Apply(needNoon, ledger.SentToQuarantine{Cause: ledger.Cause{Code: ledger.CauseByReceiptAlone}})
	}},
	{"same-number", func(w *needWorld) {
		first := w.ledger.Add(fill.Item{Name: "first", Change: func(ev *ledger.Sealed) { ev.Number = archive.NumberDigest{1} }})
		first.Archive(needNoon.Add(-2*time.Hour), time.Minute)
		w.item = w.ledger.Add(fill.Item{Name: "Huber 88", Change: func(ev *ledger.Sealed) { ev.Number, ev.SameNumber = archive.NumberDigest{1}, first.Key }})
		w.item.Archive(needNoon.Add(-time.Hour), time.Minute)
	}},
	{"strange-date", func(w *needWorld) {
		w.item = w.ledger.Add(fill.Item{Name: "Huber 88", Change: func(ev *ledger.Sealed) { ev.StrangeDate = true }})
		w.item.Archive(needNoon.Add(-time.Hour), time.Minute)
	}},
	{"looks-cut-off", func(w *needWorld) {
		w.item = w.ledger.Add(fill.Item{Name: "Huber 88", Route: ledger.Network, Change: func(ev *ledger.Sealed) { ev.LooksCutOff = true }})
		w.item.Deliver(needNoon.Add(-time.Hour), time.Minute)
	}},
	{"elsewhere", func(w *needWorld) {
		w.add(ledger.Vault).Refuse(needNoon, ledger.Cause{Code: "x"})
		w.item, w.sel = nil, report.Selection{Year: 2026, Month: time.October}
	}},
}

// TestNeeds_I26_EveryRowOnEverySurface walks the table of needs: a real ledger,
// with a state of the daemon, comes into each row, and each surface that the
// table names shows it. Other surfaces of the entry are silent. A need that one
// surface knows is thus known to all.
func TestNeeds_I26_EveryRowOnEverySurface(t *testing.T) {
	told := map[string]bool{}
	for _, c := range needCases {
		told[c.what] = true
		t.Run(c.what, func(t *testing.T) {
			w := newNeedWorld(t)
			c.enter(w)
			k := present.KindOf(c.what)
			seen := w.look()
			for surface, name := range map[present.Surface]string{present.OnStatus: "status", present.OnHealth: "health", present.OnWhy: "why", present.OnAudit: "audit", present.OnRemarks: "remarks"} {
				if surface == present.OnWhy && w.item == nil {
					continue
				}
				kit.Want(t, name+" tells of it", slices.Contains(seen[name], c.what), k.IsOn(surface))
			}
			if w.v.state == nil {
				return
			}
			kit.Want(t, "the page tells of it", slices.Contains(seen["page"], c.what), k.IsOn(present.OnStatus))
			kit.Want(t, "the metrics tell of it", slices.Contains(seen["metrics"], c.what), k.IsOn(present.OnStatus))
		})
	}
	var words []string
	for _, k := range present.NeedKinds() {
		if k.IsOn(present.OnStatus) {
			words = append(words, k.What)
		}
		kit.Want(t, k.What+" is tried", told[k.What], true)
		kit.Want(t, k.What+" says when and whose turn it is", k.When != "" && k.Turn != "" && k.On != 0, true)
		kit.Want(t, k.What+" has a title on the page", k.Title != "", k.IsOn(present.OnStatus))
	}
	reference := kit.Value(os.ReadFile("../../docs/reference.md"))(t)
	kit.Holds(t, "docs/reference.md", string(reference), "| `needs[].what` | a stable word: "+strings.Join(words, ", ")+" |")
}

// look returns the needs that each surface shows.
func (w *needWorld) look() map[string][]string {
	w.t.Helper()
	seen := map[string][]string{}
	whole := kit.Value(w.v.collectStatus(w.t.Context()))(w.t)
	if w.spoil != nil {
		w.spoil(&whole)
		whole.Needs = nil
		whole.AddNeeds(w.v.Clock)
	}
	for _, n := range whole.Needs {
		seen["status"] = append(seen["status"], n.What)
	}
	facts := kit.Value(w.v.collectFacts(newEntryCounts(w.v)))(w.t)
	if w.spoil != nil {
		w.spoil(&facts)
	}
	facts.AddNeeds(w.v.Clock)
	port := web.Handler(web.NewAccessGuard(web.Access{}, slog.New(slog.DiscardHandler)), func() web.Facts {
		return web.Facts{At: w.v.Now, Unfit: facts.UnfitReasons(), NeedsPerson: facts.CountNeeds()}
	}, page.New(onePage{status: whole}, slog.New(slog.DiscardHandler)))
	get := func(path string) string {
		r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
		a := httptest.NewRecorder()
		port.ServeHTTP(a, r)
		return a.Body.String()
	}
	metrics, body, health := get("/metrics"), get("/"), get("/readyz")
	for _, k := range present.NeedKinds() {
		if line := `{what="` + k.What + `"} `; strings.Contains(metrics, line) && !strings.Contains(metrics, line+"0\n") {
			seen["metrics"] = append(seen["metrics"], k.What)
		}
		if k.Title != "" && strings.Contains(body, "</span> "+k.Title) {
			seen["page"] = append(seen["page"], k.What)
		}
	}
	if !strings.Contains(health, `"reasons":[]`) {
		for _, n := range facts.Needs {
			if strings.Contains(health, quoted(n.Brief)) && n.Brief != "" || strings.Contains(health, quoted(n.Text)) {
				seen["health"] = append(seen["health"], n.What)
			}
		}
	}
	if w.item != nil {
		var why present.Explanation
		out, _ := asks(func(a *app) error { a.json = true; return a.runWhy(w.t.Context(), w.v, w.item.Key.String()) })
		kit.Must(w.t, json.Unmarshal([]byte(out), &why))
		if why.Needs != nil {
			seen["why"] = append(seen["why"], why.Needs.What)
		}
	}
	var audit bytes.Buffer
	_ = (&app{stdout: &audit, stderr: &bytes.Buffer{}}).auditInto(w.t.Context(), w.v, auditFlags{format: "json", whole: true, sel: w.sel}, &audit) // it says by its exit code what it found
	var said report.Summary
	kit.Must(w.t, json.NewDecoder(&audit).Decode(&said))
	for _, n := range said.Needs {
		seen["audit"] = append(seen["audit"], n.What)
	}
	for _, n := range said.Remarks {
		seen["remarks"] = append(seen["remarks"], n.What)
	}
	return seen
}

// quoted is a text as it is written within JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text can be written
	return strings.Trim(string(b), `"`)
}

// onePage answers the first page with a summary.
type onePage struct {
	page.Source
	status present.StatusSummary
}

func (p onePage) About() page.About {
	return page.About{Clock: present.Clock{Now: needNoon, Location: time.UTC}}
}

func (p onePage) Status(context.Context) (present.StatusSummary, error) { return p.status, nil }

func (p onePage) History(context.Context) (present.History, error) { return present.History{}, nil }
