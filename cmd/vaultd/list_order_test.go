package main_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// A list comes in each order, either way round, and what has no value to sort by comes last in both.
func TestList_Orders(t *testing.T) {
	s := newShelf(t)
	s.send("b", noon.Add(-3*time.Hour), "bum-1") // 1 MB each
	s.says("b", noon.Add(-2*time.Hour), "bum-1", archive.Successful)
	s.send("C", noon.Add(-2*time.Hour), "bum-2")
	s.says("C", noon.Add(-time.Hour), "bum-2", archive.Successful)
	small, doc := sealed("d", 500)
	s.tell("d", noon.Add(-time.Hour), doc, small)
	s.tell("a", noon, nil)
	type row struct {
		by, want string
		reverse  bool
		limit    int
		more     bool
	}
	kit.Rows(t, map[string]row{
		"Seen":            {by: "seen", want: "a d C b"},
		"SeenReverse":     {by: "seen", reverse: true, want: "b C d a"},
		"SeenLimit":       {by: "seen", reverse: true, limit: 2, want: "b C", more: true},
		"Folder":          {by: "folder", want: "a b C d"},
		"FolderReverse":   {by: "folder", reverse: true, want: "d C b a"},
		"FolderLimit":     {by: "folder", limit: 2, want: "a b", more: true},
		"LimitOfAll":      {by: "folder", limit: 4, want: "a b C d"},
		"Archived":        {by: "archived", want: "C b a d"},
		"ArchivedReverse": {by: "archived", reverse: true, want: "b C d a"},
		"State":           {by: "state", want: "a d C b"},
		"Size":            {by: "size", want: "C b d a"},
		"SizeReverse":     {by: "SIZE", reverse: true, want: "d b C a"},
		"Drop":            {by: "drop", want: "a d C b"},
	}, func(t *testing.T, row row) {
		args := []string{"--sort", row.by, fmt.Sprint("--reverse=", row.reverse)}
		if row.limit > 0 {
			args = append(args, fmt.Sprint("--limit=", row.limit))
		}
		got, more := s.folders(args...)
		kit.Check(t, strings.Join(got, " ") == row.want && more == row.more,
			"%q, more %v; want %q", got, more, row.want)
	})
	_, errs, code := s.say("list", "--sort=colour")
	kit.Check(t, code == exitUsage && strings.Contains(errs, "known are seen, archived"), "exit %d: %s", code, errs)
}

// What the document says selects and sorts, and pages give the whole, with the catalog as without one.
func TestList_ByWhatTheDocumentSays(t *testing.T) {
	s := filled(t)
	s.tell("Refused", noon.Add(-30*time.Minute), &ledger.Document{AsRead: archive.AsRead{Type: "CreditNote", Number: "A 5", SenderName: "acme", Date: "2026-11-05", Amount: "7"}}, ledger.Refused{Cause: ledger.Cause{Code: "x"}})
	for _, withCatalog := range []bool{false, true} {
		if withCatalog {
			s.makeCatalog()
		}
		for name, row := range map[string]struct{ number, sender, kind, by, want string }{
			"Number":         {number: "4711", want: "Müller 4711"},
			"NumberWords":    {number: "nr mueller", want: "Müller 4711"},
			"NumberInFolder": {number: "refused"},
			"Sender":         {sender: "MUELLER gmbh", want: "Otto 19, Müller 4711"},
			"SenderAsRead":   {sender: "acm", want: "Refused"},
			"Type":           {kind: "creditnote", want: "Refused"},
			"SortNumber":     {by: "number", want: "Refused, Müller 4711, Otto 19, Kern\x1b[2J 6, Huber 88"},
			"SortSender":     {by: "sender", want: "Refused, Otto 19, Müller 4711, Kern\x1b[2J 6, Huber 88"},
			"SortDate":       {by: "date", want: "Refused, Otto 19, Müller 4711, Kern\x1b[2J 6, Huber 88"},
			"SortAmount":     {by: "amount", want: "Otto 19, Müller 4711, Refused, Kern\x1b[2J 6, Huber 88"},
			"Together":       {by: "amount", kind: "Invoice", sender: "müller", want: "Otto 19, Müller 4711"},
			"All":            {want: "Refused, Otto 19, Kern\x1b[2J 6, Huber 88, Müller 4711"},
		} {
			t.Run(fmt.Sprintf("%s catalog %v", name, withCatalog), func(t *testing.T) {
				args := []string{"--sort", cmp.Or(row.by, "seen"), "--type", row.kind, "--number", row.number, "--sender", row.sender}
				got, _ := s.folders(args...)
				kit.Check(t, strings.Join(got, ", ") == row.want, "%q, want %q", got, row.want)
				var pages []string
				for after := ""; ; {
					got, more := s.folders(append(args, "--limit=2", "--after", after)...)
					if pages = append(pages, got...); !more {
						break
					}
					after = s.keys[got[len(got)-1]].String()
				}
				kit.Want(t, fmt.Sprintf("in pages %q", pages), strings.Join(pages, ", "), row.want)
			})
		}
	}
	for text, says := range map[string]string{"nothing": "is no key", archive.Key{1}.String(): "no folder has the key"} {
		_, errs, code := s.say("list", "--after", text)
		kit.Check(t, code == exitUsage && strings.Contains(errs, says), "--after %s: exit %d: %s", text, code, errs)
	}
	refused(s.say("list", "--type=Bill"))(t, "list --type=Bill", exitUsage, "known are Invoice")
	_, errs, _ := s.say("list", "--limit=2")
	want := "the newest 2; --after " + s.keys["Otto 19"].String() + " goes on"
	kit.Check(t, strings.Contains(errs, want), "%q, want %q", errs, want)
}

// A sorted list that is longer than what is held at once comes whole and in order.
func TestList_SortedInParts(t *testing.T) {
	s := newShelf(t)
	const n = 40
	var want []string
	for i := range n {
		s.tell(fmt.Sprintf("F%02d", (i*7)%n), noon.Add(time.Duration(i)*time.Second), nil)
		want = append(want, fmt.Sprintf("F%02d", i))
	}
	ask := func(c *catalog.Catalog) (got []string) {
		t.Helper()
		err := c.List(t.Context(), catalog.Filter{}, catalog.Sorting{By: catalog.ByFolder}, 7, func(string) {}, func(e ledger.Entry) error {
			got = append(got, e.Folder)
			return nil
		})
		kit.Must(t, err)
		return got
	}
	c := catalog.OpenStopped(catalog.Config{StateDir: s.cfg.StateDir, Ledger: s.ledger.Ledger, Location: s.cfg.Location, Log: slog.New(slog.DiscardHandler)}) // there is no file: the ledger is read
	got := ask(c)
	kit.Must(t, c.Close())
	kit.Want(t, fmt.Sprintf("%q", got), strings.Join(got, " "), strings.Join(want, " "))
}

// Times are a day in the operator's zone, a time, RFC 3339, or how long ago; the day of --until counts whole.
func TestList_SinceUntil(t *testing.T) {
	s := newShelf(t)
	berlin := s.cfg.Location
	s.tell("eve", time.Date(2026, 11, 17, 23, 59, 59, 0, berlin), nil)
	s.tell("morning", time.Date(2026, 11, 18, 0, 0, 0, 0, berlin), nil)
	s.tell("night", time.Date(2026, 11, 18, 23, 59, 59, 0, berlin), nil)
	s.tell("today", noon.Add(-time.Hour), nil)
	kit.Rows(t, map[string]struct{ since, until, want string }{
		"None":     {"", "", "today night morning eve"},
		"Day":      {"2026-11-18", "2026-11-18", "night morning"},
		"Ago":      {"24h", "", "today"},
		"Days":     {"3d", "1d", "night morning eve"},
		"RFC3339":  {"2026-11-17T22:59:59Z", "2026-11-18T22:59:59Z", "morning eve"},
		"DayTime":  {"2026-11-18 00:00", "2026-11-18 12:00", "morning"},
		"Reversed": {"2026-11-19", "2026-11-18", ""},
	}, func(t *testing.T, row struct{ since, until, want string }) {
		got, _ := s.folders("--since", row.since, "--until", row.until)
		kit.Check(t, strings.Join(got, " ") == row.want, "%q, want %q", got, row.want)
	})
	for _, wrong := range []string{"yesterday", "2026-13-01", "7", "20.11.2026"} {
		_, errs, code := s.say("list", "--since", wrong)
		kit.Check(t, code == exitUsage && strings.Contains(errs, "--since: "), "%q: exit %d: %s", wrong, code, errs)
	}
}

// lives are ways to stand in the ledger, by what they come to. Each begins with a folder that was claimed.
func lives() map[string]func(s *shelf, folder string) {
	refused := ledger.Refused{Cause: ledger.Cause{Code: "x"}}
	back := []ledger.Event{ledger.PlaceIntended{Dest: "_rejected/y"}, ledger.Placed{}}
	archived := func(s *shelf, folder string) {
		s.send(folder, noon.Add(-5*time.Hour), archive.RemoteID("bum-"+folder))
		s.says(folder, noon.Add(-4*time.Hour), archive.RemoteID("bum-"+folder), archive.Successful)
	}
	return map[string]func(s *shelf, folder string){
		"Discovered": func(s *shelf, f string) { s.tell(f, noon, nil, ledger.StillChanging{}) },
		"Packaged":   func(s *shelf, f string) { seal, doc := sealed(f, 1); s.tell(f, noon, doc, seal) },
		"Registering": func(s *shelf, f string) {
			seal, doc := sealed(f, 1)
			s.tell(f, noon, doc, seal, ledger.RegisterIntended{})
		},
		"PostedInVain": func(s *shelf, f string) {
			seal, doc := sealed(f, 1)
			s.tell(f, noon, doc, seal, ledger.RegisterIntended{}, ledger.RegisterUnanswered{})
		},
		"Uploaded": func(s *shelf, f string) { s.send(f, noon, archive.RemoteID("bum-"+f)) },
		"Unclear":  func(s *shelf, f string) { s.unclear(f, 1) },
		"Archived": archived,
		"Rejected": func(s *shelf, f string) { s.tell(f, noon, nil, refused) },
		"Returned": func(s *shelf, f string) { s.tell(f, noon, nil, append([]ledger.Event{refused}, back...)...) },
		"Quarantined": func(s *shelf, f string) {
			s.tell(f, noon, nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "x"}})
		},
		"Contradicted": func(s *shelf, f string) {
			archived(s, f)
			s.says(f, noon, archive.RemoteID("bum-"+f), archive.Failed)
		},
		"ClosedInDoubt": func(s *shelf, f string) { s.unclear(f, 0); s.tell(f, noon, nil, ledger.Closed{}) },
	}
}

// The verdict of each command on a real entry is that of the ledger's transition, and what it refuses changes nothing.
func TestActs_I29_VerdictIsTheLedgers(t *testing.T) {
	s := newShelf(t)
	marks := map[string][]ledger.Event{"": nil, "held": {ledger.Held{}}, "doubted": {ledger.ReconcileRequired{}}, "both": {ledger.ReconcileRequired{}, ledger.Held{}}}
	allowed, refused := 0, 0
	for life, live := range lives() {
		for mark, evs := range marks {
			for _, one := range []present.Action{present.Close, present.Release, present.Hold, present.Unhold, present.Retry} {
				folder := life + " " + mark + " " + one.Name
				live(s, folder)
				if evs != nil {
					s.tell(folder, noon, nil, evs...)
				}
				before, _, err := s.ledger.Entry(s.keys[folder])
				kit.Must(t, err)
				_, illegal := ledger.Transition(before, one.Event(ledger.Operator{}), archive.Instant{Wall: noon})
				_, errs, code := s.say(one.Name, folder, "--reason", "asked the provider")
				after, _, _ := s.ledger.Entry(before.Key)
				// An allowed act goes as far as it can here: without a secret the archive cannot be asked, and the drop folder is not there.
				isAllowed := code == exitDone || one.Name == "release" && code == exitRights || one.Name == "retry" && strings.Contains(errs, "is not there")
				kit.Check(t, isAllowed == (illegal == nil) && (illegal == nil || after.Rev == before.Rev),
					"%s: exit %d %s; the ledger says %v", folder, code, errs, illegal)
				if illegal != nil {
					refused++
				} else {
					allowed++
				}
			}
		}
	}
	kit.Check(t, allowed >= 60 && refused >= 60, "%d allowed, %d refused", allowed, refused)
}

// Closing what the archive contradicts ends the alarm, and the flag stays.
func TestClose_I13_I26_ContradictionIsSettled(t *testing.T) {
	s := newShelf(t)
	lives()["Contradicted"](s, "Müller 4711")
	needs := func() int {
		return len(s.summary().Needs)
	}
	n := needs()
	kit.Need(t, n == 1, "%d needs before", n)
	out, errs, code := s.say("close", "Müller 4711", "--reason", "provider: ticket 4711")
	e, _, _ := s.ledger.Entry(s.keys["Müller 4711"])
	if code != 0 || e.State != ledger.Archived || !e.Contradicted || !e.Resolved || needs() != 0 || !strings.Contains(out, "flagged for ever") {
		t.Errorf("exit %d, %d needs, %+v\n%s%s", code, needs(), e, out, errs)
	}
	_, errs, code = s.say("close", "Müller 4711", "--reason", "again")
	kit.Check(t, code == exitFailed && strings.Contains(errs, "resolved already"), "exit %d %s", code, errs)
	s.tell("Kern 6", noon, nil, ledger.SentToQuarantine{}, ledger.ReconcileRequired{})
	if _, errs, _ := s.say("close", "Kern 6", "--reason", "x"); strings.Contains(errs, "nothing to close") || !strings.Contains(errs, "vaultd reconcile") {
		t.Errorf(`errs = %v, want errs without "nothing to close", errs with "vaultd reconcile"`, errs)
	}
}
