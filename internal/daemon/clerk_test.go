package daemon

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
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
	all := &part{fix: 4, taken: 45, rejects: []ledger.Entry{
		{State: ledger.Discovered, Folder: "Adam 3", Cause: ledger.Cause{Code: ingest.Unreadable, Text: `cannot be read: "a.pdf" (owner alice, 0600). IT must give the share's group the right to read it`}},
		reject("Kern 6", "contains-a-link"), reject("Schulz 3", "documentDate-missing"), reject("Huber 88", "amount-not-understood"),
	}, newest: []ledger.Entry{
		{State: ledger.Quarantined, Folder: "Evil\u202efdp\n", SeenAt: now.AddDate(0, 0, -1)},
		{State: ledger.Packaged, Folder: "Müller 4712", SeenAt: now.Add(-27 * time.Minute)},
		{State: ledger.Discovered, Folder: "Otto 19", SeenAt: now.Add(-2 * time.Minute)},
	}}
	p.ledger(all)
	at := func(d time.Duration) time.Time { return now.Add(-d) }
	p.notTaken(watch.Snapshot{NotTaken: []watch.NotTakenGroup{
		{Reason: watch.LooseFile, Count: 1, Items: []watch.NotTakenItem{{Name: "scan7.pdf", FirstSeen: at(time.Minute)}}},
		{Reason: watch.NoRight, Count: 1, Items: []watch.NotTakenItem{{Name: "Alt 1", FirstSeen: at(time.Hour), Detail: `drop acme-in: no right to take "Alt 1" (owner alice, 0755). It stays there.`}}},
		{Reason: watch.NoSidecar, Count: 3, Items: []watch.NotTakenItem{
			{Name: "Meier 12", FirstSeen: at(52 * time.Minute)}, {Name: "Neu 1", FirstSeen: at(time.Minute)},
			{Name: "Meier 13", FirstSeen: at(time.Minute), Detail: "has metadata.json.txt: rename it to metadata.json (Explorer: View > File name extensions)"}}},
		{Reason: watch.Copying, Count: 1, Items: []watch.NotTakenItem{{Name: "Wagner 5", FirstSeen: at(time.Minute), LastChanged: at(20 * time.Second)}}},
	}}, 30*time.Minute, false)
	p.Today = today{archived: 57, last: "Kunz 301", lastAt: at(5*time.Hour + 28*time.Minute), repeats: 1}
	p.Duplicates = []line{{"Otto 9", "archived 3 Nov 2026, nothing to do"}}
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
  Meier 12              no metadata.json since 13:40
  Meier 13              has metadata.json.txt: rename it to metadata.json (Explorer: View > File name extensions)
STILL COPYING (1)
  Wagner 5              changed 20 s ago
NOT TAKEN YET (1)
  Neu 1                 no metadata.json since 14:31
TAKEN, NOT YET ARCHIVED (45, newest first)
  Otto 19               taken 14:30, being packed
  Müller 4712           taken 14:05, waiting for archive
  Evil�fdp�             taken 19 Nov 14:32, stopped: IT must decide. Do not drop it again
  ... and 42 more
ARCHIVED TODAY (57)     last: Kunz 301, 09:04
DUPLICATE TODAY (1)
  Otto 9                archived 3 Nov 2026, nothing to do
`
	if got := p.head() + p.body(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	empty := page{Drop: "acme-in", Now: now}
	if got := empty.head() + empty.body(); !strings.Contains(got, "Nothing to put right, nothing waiting.\nARCHIVED TODAY (0)\n") || strings.Contains(got, "TEST") {
		t.Errorf("empty:\n%s", got)
	}
}

// What happened today counts once, whatever else is told of it, and not tomorrow.
func TestToday_CountsEachOnce(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 50, 0, 0, time.UTC)
	var d today
	e := ledger.Entry{Key: archive.NewKey(now), State: ledger.Archived, Source: ledger.Claimed, Folder: "Kunz 301", ArchivedAt: now}
	d.count(e, now)
	d.count(e, now) // placing it was postponed
	e.Source = ledger.Keeping
	d.count(e, now)
	e.Source = ledger.Kept
	d.count(e, now)
	late := ledger.Entry{Key: archive.NewKey(now), State: ledger.Archived, Source: ledger.Claimed, ArchivedAt: now.AddDate(0, 0, -1)}
	d.count(late, now) // learnt today only
	for i := range 9 {
		d.count(ledger.Entry{Key: archive.NewKey(now), State: ledger.Duplicate, Source: ledger.Claimed, Folder: string(rune('a' + i))}, now)
	}
	if got := d.on(now); got.archived != 1 || got.last != "Kunz 301" || got.repeats != 9 || len(got.doubles) != mostDoubles || got.doubles[0].folder != "e" {
		t.Errorf("%+v", got)
	}
	next := now.Add(time.Hour)
	if got := d.on(next); got.archived != 0 || got.repeats != 0 {
		t.Errorf("the next day: %+v", got)
	}
	d.count(late, next) // still not placed: no news
	if got := d.on(next); got.archived != 0 {
		t.Errorf("counted again: %+v", got)
	}
	var again today
	again.recall(ledger.Entry{State: ledger.Archived, Source: ledger.Kept, Folder: "Kunz 301", ArchivedAt: now}, now)
	again.recall(ledger.Entry{State: ledger.Duplicate, Source: ledger.Returned, SeenAt: now.AddDate(0, 0, -1)}, now)
	if got := again.on(now); got.archived != 1 || got.repeats != 0 {
		t.Errorf("after a start: %+v", got)
	}
}

// Whatever is listed, twenty names are left, the newest, and the right count.
func TestSurvey_I21_Bounded(t *testing.T) {
	p := &part{}
	p.count(ledger.Waiting, 1000)
	for i := range 60 {
		p.list(ledger.Entry{Key: archive.Key{byte(60 - i)}, State: ledger.Packaged})
	}
	p.newest = lastOf(p.newest)
	var shown page
	shown.ledger(p)
	if shown.Taken.count != 1000 || len(shown.Taken.lines) != listed || p.newest[listed-1].Key != (archive.Key{60}) {
		t.Errorf("%d, %d", shown.Taken.count, len(shown.Taken.lines))
	}
}
