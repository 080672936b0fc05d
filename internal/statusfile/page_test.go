package statusfile

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// What a clerk sees, to the letter.
func TestPage_WhatAClerkReads(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 20, 14, 32, 0, 0, zone)
	p := page{Drop: "acme-in", Sidecar: "metadata.json", Now: now, Test: true, Delayed: now.Add(-5*time.Hour - 20*time.Minute)}
	reject := func(folder, code string) ledger.Entry {
		return ledger.Entry{State: ledger.Rejected, Folder: folder, Dest: "_rejected/" + folder, Cause: ledger.Cause{Code: code}}
	}
	all := &dropOverview{fix: 4, taken: 45, rejects: []ledger.Entry{
		{State: ledger.Discovered, Folder: "Adam 3", Cause: ledger.Cause{Code: ingest.Unreadable, Text: `cannot be read: "a.pdf" (owner alice, 0600). IT must give the share's group the right to read it`}},
		reject("Kern 6", "contains-a-link"), reject("Schulz 3", "documentDate-missing"), reject("Huber 88", "amount-not-understood"),
	}, newest: []ledger.Entry{
		{State: ledger.Quarantined, Folder: "Evil\u202efdp\n", SeenAt: now.AddDate(0, 0, -1)},
		{State: ledger.Packaged, Folder: "Müller 4712", SeenAt: now.Add(-27 * time.Minute)},
		{State: ledger.Discovered, Folder: "Otto 19", SeenAt: now.Add(-2 * time.Minute)},
	}}
	p.addLedger(all)
	at := func(d time.Duration) time.Time { return now.Add(-d) }
	p.addNotTaken(watch.Snapshot{NotTaken: []watch.NotTakenGroup{
		{Reason: watch.LooseFile, Count: 1, Items: []watch.NotTakenItem{{Name: "scan7.pdf", FirstSeen: at(time.Minute)}}},
		{Reason: watch.NoRight, Count: 1, Items: []watch.NotTakenItem{{Name: "Alt 1", FirstSeen: at(time.Hour), Detail: `drop acme-in: no right to take "Alt 1" (owner alice, 0755). It stays there.`}}},
		{Reason: watch.NoSidecar, Count: 3, Items: []watch.NotTakenItem{
			{Name: "Meier 12", FirstSeen: at(52 * time.Minute)}, {Name: "Neu 1", FirstSeen: at(time.Minute)},
			{Name: "Meier 13", FirstSeen: at(time.Minute), Detail: "has metadata.json.txt: rename it to metadata.json (Explorer: View > File name extensions)"}}},
		{Reason: watch.Copying, Count: 1, Items: []watch.NotTakenItem{{Name: "Wagner 5", FirstSeen: at(time.Minute), LastChanged: at(20 * time.Second)}}},
	}}, 30*time.Minute, false)
	p.Today = dayCounts{archived: endCount{57, "Kunz 301", at(5*time.Hour + 28*time.Minute)}, duplicateCount: 1}
	p.Duplicates = []item{{"Otto 9", "archived 3 Nov 2026, nothing to do"}}
	want := `INVOICE ARCHIVE acme-in              Fri 20 Nov 2026 14:32 CET
TEST, NO EVIDENCE: nothing dropped here counts as archived.
Time over 10 minutes old? Call IT.
DELAYED since 09:12.
Your folders are safe and will be sent. Do not drop them again.

PLEASE FIX (8)
  _rejected\Huber 88    amount not understood
  _rejected\Schulz 3    documentDate missing
  _rejected\Kern 6      contains a link
  Adam 3                cannot be read: "a.pdf" (owner alice, 0600). IT must give the share's group the right to read it
  (read _REASON.txt there)
  scan7.pdf             loose file since 14:31: put it in a folder
  Alt 1                 no right to take it (owner alice, 0755) since 13:32: IT must set the share's masks
  Meier 12              no metadata.json since 13:40: copy that of _template and fill it in
  Meier 13              has metadata.json.txt: rename it to metadata.json (Explorer: View > File name extensions)
STILL COPYING (1)
  Wagner 5              changed 20 s ago
NOT TAKEN YET (1)
  Neu 1                 no metadata.json since 14:31: copy that of _template and fill it in
TAKEN, NOT YET ARCHIVED (45, newest first)
  Otto 19               taken 14:30, being packed
  Müller 4712           taken 14:05, waiting for archive
  Evil�fdp�             taken 19 Nov 14:32, stopped: IT must decide. Do not drop it again
  ... and 42 more
ARCHIVED TODAY (57)     last: Kunz 301, 09:04
DUPLICATE TODAY (1)
  Otto 9                archived 3 Nov 2026, nothing to do
`
	kit.Want(t, "the page", p.renderHead()+p.renderBody(), want)
	empty := page{Drop: "acme-in", Now: now}
	if got := empty.renderHead() + empty.renderBody(); !strings.Contains(got, "Nothing to put right, nothing waiting.\nARCHIVED TODAY (0)\n") || strings.Contains(got, "TEST") {
		t.Errorf("empty:\n%s", got)
	}
}

// What happened today counts once, whatever else is told of it, and not tomorrow.
func TestDayCounts_CountsEachOnce(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 50, 0, 0, time.UTC)
	var d dayCounts
	e := ledger.Entry{Key: archive.NewKey(now), State: ledger.Archived, Source: ledger.Claimed, Folder: "Kunz 301", ArchivedAt: now}
	d.addCommitted(e, now)
	d.addCommitted(e, now) // placing it was postponed
	e.Source = ledger.Keeping
	d.addCommitted(e, now)
	e.Source = ledger.Kept
	d.addCommitted(e, now)
	late := ledger.Entry{Key: archive.NewKey(now), State: ledger.Archived, Source: ledger.Claimed, ArchivedAt: now.AddDate(0, 0, -1)}
	d.addCommitted(late, now) // learnt today only
	for i := range 9 {
		d.addCommitted(ledger.Entry{Key: archive.NewKey(now), State: ledger.Duplicate, Source: ledger.Claimed, Folder: string(rune('a' + i))}, now)
	}
	if got := d.onDay(now); got.archived.count != 1 || got.archived.last != "Kunz 301" || got.duplicateCount != 9 || len(got.duplicates) != mostDuplicates || got.duplicates[0].folder != "e" {
		t.Errorf(`%+v, want got.archived.count = 1, got.archived.last = "Kunz 301", got.duplicateCount = 9, len(got.duplicates) = %v, got.duplicates[0].folder = "e"`, got, mostDuplicates)
	}
	next := now.Add(time.Hour)
	got := d.onDay(next)
	kit.Check(t, got.archived.count == 0 && got.duplicateCount == 0, "the next day: %+v", got)
	d.addCommitted(late, next) // still not placed: no news
	got = d.onDay(next)
	kit.Check(t, got.archived.count == 0, "counted again: %+v", got)
	var again dayCounts
	again.addEarlier(ledger.Entry{State: ledger.Archived, Source: ledger.Kept, Folder: "Kunz 301", ArchivedAt: now}, now)
	again.addEarlier(ledger.Entry{State: ledger.Duplicate, Source: ledger.Returned, SeenAt: now.AddDate(0, 0, -1)}, now)
	got = again.onDay(now)
	kit.Check(t, got.archived.count == 1 && got.duplicateCount == 0, "after a start: %+v", got)
}

// Whatever is mostShown, twenty names are left, the newest, and the right count.
func TestOverview_I21_Bounded(t *testing.T) {
	p := &dropOverview{}
	p.addCount(ledger.Waiting, 1000)
	for i := range 60 {
		p.addShown(ledger.Entry{Key: archive.Key{byte(60 - i)}, State: ledger.Packaged})
	}
	p.newest = newestOf(p.newest)
	var shown page
	shown.addLedger(p)
	if shown.Taken.count != 1000 || len(shown.Taken.items) != mostShown || p.newest[mostShown-1].Key != (archive.Key{60}) {
		t.Errorf("%d, %d, want shown.Taken.count = 1000, len(shown.Taken.items) = %v, p.newest[mostShown-1].Key = %v", shown.Taken.count, len(shown.Taken.items), mostShown, (archive.Key{60}))
	}
}

// What ends while the day is still being counted is counted once, whichever is first.
func TestDayCounts_CountedOnceBesideTheWork(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	ended := func(n byte, s ledger.Source) ledger.Entry {
		return ledger.Entry{Key: archive.Key{n}, State: ledger.Archived, Source: s, ArchivedAt: now}
	}
	d := dayCounts{recalling: true}
	d.addCommitted(ended(1, ledger.Claimed), now) // ended, and placed
	d.addCommitted(ended(1, ledger.Kept), now)
	d.addEarlier(ended(1, ledger.Kept), now)
	d.addEarlier(ended(2, ledger.Claimed), now) // ended before, placed after it was recalled
	d.addCommitted(ended(2, ledger.Kept), now)
	d.addCommitted(ended(3, ledger.Kept), now) // ended before, placed before it was recalled
	d.addEarlier(ended(3, ledger.Kept), now)
	d.addCommitted(ended(4, ledger.Claimed), now) // ended, not placed
	d.addEarlier(ended(4, ledger.Claimed), now)
	d.endRecall()
	kit.Check(t, d.archived.count == 4 && len(d.ended) == 1,
		"%d archived, %d of them not placed", d.archived.count, len(d.ended))
}

// After a month _STATUS.txt does not name them any more.
func TestOverview_I26_UnusualForAMonth(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		kit.Must(t, boltledger.Create(dir, ledger.Info{ID: "L-1", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()}))
		l := kit.Value(boltledger.Open(boltledger.Config{Dir: dir}))(t)
		defer l.Close()
		for n := byte(1); n <= 2; n++ {
			at := archive.Instant{Wall: time.Now()}
			rs, err := l.Apply(t.Context(), ledger.Change{Key: archive.NewKey(at.Wall), At: at, Events: []ledger.Event{ledger.Recovered{Vault: "V", Drop: "acme-in",
				State: ledger.Archived, Source: ledger.Gone, Remote: archive.RemoteID([]byte{'b', n}), SuccessRecord: []byte("{}"), ArchivedAt: at.Wall, StrangeDate: true}, ledger.Reconciled{}}})
			kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
			time.Sleep(24 * time.Hour)
		}
		var s overview
		for _, row := range []struct {
			later time.Duration
			want  int
		}{{0, 2}, {ledger.ReviewPeriod - 36*time.Hour, 1}, {24 * time.Hour, 0}} {
			time.Sleep(row.later)
			p, err := s.ofDrop(l, "acme-in")
			kit.Check(t, err == nil && p.unusual == row.want && len(p.checks) == row.want,
				"%v later %d count, %d are named (%v)", row.later, p.unusual, len(p.checks), err)
		}
	})
}

// A link is no loose file: what to do about it is something else.
func TestStatus_LinkHasItsOwnWords(t *testing.T) {
	p := page{Now: time.Now()}
	for detail, words := range map[string]string{watch.LinkDetail: "a link: copy the folder itself here, delete the link", "": "put it in a folder"} {
		text, act := p.describeWaiting(watch.LooseFile, watch.NotTakenItem{Name: "x", FirstSeen: p.Now, Detail: detail}, false)
		kit.Check(t, act && strings.Contains(text, words), "%q: %q, want act, text with %q", detail, text, words)
	}
}

// In a drop of single PDFs a clerk reads of a folder, a link and a device what to do about each.
func TestStatus_DropOfSinglePDFs(t *testing.T) {
	p := page{Now: time.Now(), Route: ledger.PDF}
	for detail, words := range map[string]string{watch.FolderDetail: "is a folder; this drop takes single PDFs", watch.LinkDetail: "copy the PDF itself", "neither file nor folder": "ask IT"} {
		text, act := p.describeWaiting(watch.NotFile, watch.NotTakenItem{Name: "Mai", FirstSeen: p.Now, Detail: detail}, false)
		kit.Check(t, act && strings.Contains(text, words), "%q: %q, want act, text with %q", detail, text, words)
	}
	for detail, words := range map[string]string{drop.ErrReservedName.Error(): "rename the file"} {
		text, act := p.describeWaiting(watch.Failed, watch.NotTakenItem{Name: "_status.txt", FirstSeen: p.Now, Detail: detail}, false)
		kit.Check(t, act && strings.Contains(text, words), "%q: %q, want act, text with %q", detail, text, words)
	}
}

// What a clerk sees of a drop of single PDFs, to the letter.
func TestPage_WhatAClerkReadsOfPDFs(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 32, 0, 0, time.FixedZone("CET", 3600))
	p := page{Drop: "ap-scans", Now: now, Test: true, Route: ledger.PDF, Delayed: now.Add(-time.Hour)}
	pdf := func(s ledger.State, name string, before time.Duration) ledger.Entry {
		return ledger.Entry{Route: ledger.PDF, State: s, Folder: name, SeenAt: now.Add(-before)}
	}
	back := pdf(ledger.Rejected, "brief.docx", time.Hour)
	p.addLedger(&dropOverview{fix: 1, taken: 4, rejects: []ledger.Entry{back}, newest: []ledger.Entry{
		pdf(ledger.Quarantined, "scan1.pdf", 4*time.Minute), pdf(ledger.Sending, "scan2.pdf", 3*time.Minute),
		pdf(ledger.Packaged, "scan3.pdf", 2*time.Minute), pdf(ledger.Discovered, "scan4.pdf", time.Minute)}})
	p.Today = dayCounts{delivered: endCount{3, "scan0.pdf", now.Add(-5 * time.Hour)}, duplicateCount: 1}
	p.Duplicates = []item{{"copy.pdf", "sent 3 Nov 2026, nothing to do"}}
	want := `PDF DELIVERY ap-scans                Fri 20 Nov 2026 14:32 CET
TEST, NO EVIDENCE: nothing dropped here counts as delivered.
Time over 10 minutes old? Call IT.
DELAYED since 13:32.
Your files are safe and will be sent. Do not drop them again.

PLEASE FIX (1)
  brief.docx            not sent; on its way back to you
TAKEN, NOT YET DELIVERED (4, newest first)
  scan4.pdf             taken 14:31, being checked
  scan3.pdf             taken 14:30, waiting to be sent
  scan2.pdf             taken 14:29, being sent
  scan1.pdf             taken 14:28, stopped: IT must decide. Do not drop it again
DELIVERED TODAY (3)     last: scan0.pdf, 09:32
DUPLICATE TODAY (1)
  copy.pdf              sent 3 Nov 2026, nothing to do
`
	kit.Want(t, "the page", p.renderHead()+p.renderBody(), want)
}

// What a clerk sees of a drop of documents for the business network, to the letter: a rejection after delivery stands among what is to be fixed.
func TestPage_WhatAClerkReadsOfNetworkDocuments(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 32, 0, 0, time.FixedZone("CET", 3600))
	p := page{Drop: "out", Now: now, Test: true, Route: ledger.Network, Delayed: now.Add(-time.Hour), Stopped: true}
	sent := func(s ledger.State, name string, before time.Duration) ledger.Entry {
		return ledger.Entry{Route: ledger.Network, State: s, Folder: name, SeenAt: now.Add(-before)}
	}
	back, late := sent(ledger.Rejected, "Huber 88", time.Hour), sent(ledger.Delivered, "Otto 9", 50*time.Hour)
	late.Contradicted, late.Dest = true, "_delivered/2026-11/Otto 9"
	unwanted := sent(ledger.Delivered, "Schulz 3", 40*time.Hour)
	unwanted.Recipient, unwanted.Dest = ledger.RecipientRejected, "_delivered/2026-11/Schulz 3"
	p.addLedger(&dropOverview{fix: 3, taken: 5, rejects: []ledger.Entry{late, unwanted, back}, newest: []ledger.Entry{
		sent(ledger.Quarantined, "Kern 6", 5*time.Minute), sent(ledger.Uploaded, "Meier 12", 4*time.Minute), sent(ledger.Sending, "Kunz 301", 3*time.Minute),
		sent(ledger.Packaged, "Otto 10", 2*time.Minute), sent(ledger.Discovered, "Otto 11", time.Minute)}})
	p.Held.addItem("Otto 12", "waits")
	p.Today = dayCounts{delivered: endCount{3, "Otto 8", now.Add(-5 * time.Hour)}, duplicateCount: 1}
	p.Duplicates = []item{{"Otto 8 copy", "sent 3 Nov 2026, nothing to do"}}
	want := `DOCUMENT DELIVERY out                Fri 20 Nov 2026 14:32 CET
TEST, NO EVIDENCE: nothing dropped here counts as delivered.
Time over 10 minutes old? Call IT.
DELAYED since 13:32.
Your folders are safe and will be sent. Do not drop them again.
Until IT has made its check, no folder is taken.

PLEASE FIX (3)
  Huber 88              not delivered; on its way back to you
  Schulz 3              delivered, and rejected by the recipient: ask them why, and tell IT
  Otto 9                rejected after it had been delivered: ask IT
WAITING FOR IT'S CHECK (1)
  Otto 12               waits
TAKEN, NOT YET DELIVERED (5, newest first)
  Otto 11               taken 14:31, being checked
  Otto 10               taken 14:30, waiting to be sent
  Kunz 301              taken 14:29, being sent
  Meier 12              taken 14:28, sent, waiting for the network's word
  Kern 6                taken 14:27, stopped: IT must decide. Do not drop it again
DELIVERED TODAY (3)     last: Otto 8, 09:32
DUPLICATE TODAY (1)
  Otto 8 copy           sent 3 Nov 2026, nothing to do
`
	kit.Want(t, "the page", p.renderHead()+p.renderBody(), want)
}

// I12: in no state and for no reason does the file of a drop of the network speak of an archive, a PDF or an accounts-payable system.
func TestPage_I12_NetworkDropSpeaksOfNothingElse(t *testing.T) {
	p := page{Drop: "out", Now: time.Now(), Route: ledger.Network, Sidecar: "document.json"}
	var texts []string
	for _, s := range []ledger.State{ledger.Discovered, ledger.Packaged, ledger.Registering, ledger.Registered, ledger.Sending, ledger.Uploaded, ledger.Unclear, ledger.Delivered, ledger.Rejected, ledger.Quarantined} {
		for _, change := range []func(e *ledger.Entry){func(*ledger.Entry) {}, func(e *ledger.Entry) { e.Hold = true }, func(e *ledger.Entry) { e.Contradicted = true }, func(e *ledger.Entry) { e.WaitsFor = archive.Key{1} },
			func(e *ledger.Entry) { e.Dest = "_rejected/Huber 88" }} {
			e := ledger.Entry{Route: ledger.Network, State: s, Folder: "Huber 88"}
			change(&e)
			_, text := p.describeRejected(e)
			texts = append(texts, describeProgress(e), text)
		}
	}
	for _, r := range []watch.Reason{watch.LooseFile, watch.NoSidecar, watch.Copying, watch.StillOpen, watch.Temporary, watch.Placeholder, watch.Incomplete, watch.NoRight, watch.Busy, watch.OtherDevice, watch.ReadOnly, watch.NoRoom, watch.Failed, watch.Queued, watch.Held} {
		for _, detail := range []string{"", drop.ErrReservedName.Error()} {
			text, _ := p.describeWaiting(r, watch.NotTakenItem{Name: "x", FirstSeen: p.Now, Detail: detail}, true)
			texts = append(texts, text)
		}
	}
	p.addNotTaken(watch.Snapshot{NotTaken: []watch.NotTakenGroup{{Reason: watch.NoRoom, Count: 1, Items: []watch.NotTakenItem{{Name: "x", FirstSeen: p.Now}}}}}, time.Hour, true)
	texts = append(texts, p.renderHead(), p.renderBody())
	for _, text := range texts {
		for _, word := range []string{"archiv", "pdf", "accounts-payable", "zip"} {
			kit.Check(t, text != "" && !strings.Contains(strings.ToLower(text), word), "it says %q: %q", word, text)
		}
	}
}

// I12: what was delivered today is not counted as archived, neither beside the work nor after a start.
func TestDayCounts_I12_DeliveredIsNotArchived(t *testing.T) {
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	sent := ledger.Entry{Key: archive.NewKey(now), Route: ledger.PDF, State: ledger.Delivered, Source: ledger.Claimed, Folder: "scan7.pdf", UploadedAt: now}
	stored := ledger.Entry{Key: archive.NewKey(now), Route: ledger.Vault, State: ledger.Archived, Source: ledger.Claimed, Folder: "Kunz 301", UploadedAt: now, ArchivedAt: now}
	before := sent
	before.Key, before.UploadedAt = archive.NewKey(now), now.AddDate(0, 0, -1)
	var work, start dayCounts
	for _, e := range []ledger.Entry{sent, stored, before, sent} {
		work.addCommitted(e, now)
	}
	for _, e := range []ledger.Entry{sent, stored, before} {
		e.Source = ledger.Kept
		start.addEarlier(e, now)
	}
	for name, d := range map[string]dayCounts{"beside the work": work.onDay(now), "after a start": start.onDay(now)} {
		kit.Check(t, d.archived == (endCount{1, "Kunz 301", now}) && d.delivered == (endCount{1, "scan7.pdf", now}),
			"%s: %+v, want d.archived = %v, d.delivered = %v", name, d, (endCount{1, "Kunz 301", now}), (endCount{1, "scan7.pdf", now}))
	}
	p := page{Drop: "ap-scans", Now: now, Today: work.onDay(now)}
	kit.Holds(t, "the text", p.renderBody(), "ARCHIVED TODAY (1)     last: Kunz 301, 14:00\nDELIVERED TODAY (1)     last: scan7.pdf, 14:00\n")
}

// Who dropped a document whose recipient is not listed reads that it is not sent, and what to do.
func TestPage_I26_RecipientThatIsNotListed(t *testing.T) {
	e := ledger.Entry{State: ledger.Packaged, Route: ledger.Network, Folder: "Huber 88", Cause: ledger.Cause{Code: ledger.CauseRecipientNotListed,
		Text: "NOT SENT YET. SIREN 123456789 has no valid line in the directory (asked 14:02). Check it with the recipient."}}
	part := &dropOverview{}
	part.addShown(e)
	part.addCount(e.Attention(), 1)
	p := page{Drop: "acme-out", Route: ledger.Network, Now: time.Date(2026, 11, 20, 14, 32, 0, 0, time.UTC)}
	p.addLedger(part)
	kit.Holds(t, "the text", p.renderBody(), "PLEASE FIX (1)\n  Huber 88              "+e.Cause.Text)
}

// Of each class of entries that need a person it is decided who is told: nobody who dropped a folder misses a class that was forgotten here.
func TestOverview_EveryClassIsTold(t *testing.T) {
	elsewhere := map[ledger.Attention]string{
		ledger.ContradictedByService: "by its state and its route", ledger.RepeatedNumber: "as unusual", ledger.StrangeDate: "as unusual", ledger.LooksCutOff: "as unusual",
		ledger.NotCompared:   "to IT alone: a download may be charged",
		ledger.ArchivedTwice: "to IT alone: who dropped it can do nothing", ledger.SourceChanged: "to IT alone: it is not known who changed it",
		ledger.ContentDiffers: "to IT alone: only the provider can do something",
		ledger.AskedByService: "to IT alone: whoever pays decides, and not who dropped it",
	}
	for class := ledger.NoAttention + 1; class < ledger.EndOfAttention; class++ {
		shown := slices.Contains(shownWhole, class)
		kit.Check(t, shown != (elsewhere[class] != ""), "class %d: shown %t, and else told %q", class, shown, elsewhere[class])
	}
}
