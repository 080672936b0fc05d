package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// unusual has two archived invoices with one number, and an archived one with a date that cannot be.
func unusual(t *testing.T) *shelf {
	s := newShelf(t)
	for i, folder := range []string{"Huber 1", "Huber 1 neu", "Huber 9"} {
		at := noon.Add(time.Duration(i-10) * time.Hour)
		remote := archive.RemoteID("bum-" + string('a'+rune(i)))
		seal, doc := sealed(folder, 1_000_000)
		switch folder {
		case "Huber 1":
			seal.Number = archive.NumberDigest{1}
		case "Huber 1 neu":
			seal.Number, seal.SameNumber = archive.NumberDigest{1}, s.keys["Huber 1"]
		default:
			seal.StrangeDate = true
		}
		s.tell(folder, at, doc, seal)
		s.tell(folder, at, nil, ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: urlCanary + "&key=" + archive.PresignedURL(remote), Sent: archive.Instant{Wall: at}}},
			ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal})
		s.says(folder, at, remote, archive.Successful)
		s.tell(folder, at, nil, ledger.PlaceIntended{Dest: "_archived/2026-11/" + folder}, ledger.Placed{})
	}
	return s
}

const sameNumberWords = `same invoice number, sender and date as "Huber 1" (acme-in), archived 20 Nov 2026`

// I26: an invoice number that came twice is told with both folders wherever somebody looks at the second one.
func TestShow_I26_SameNumberNamesBothFolders(t *testing.T) {
	s := unusual(t)
	for name, look := range map[string]func(a *app) error{
		"show":   func(a *app) error { return a.runShow(t.Context(), s.view, "Huber 1 neu") },
		"why":    func(a *app) error { return a.runWhy(t.Context(), s.view, "Huber 1 neu") },
		"list":   func(a *app) error { return a.runList(t.Context(), s.view, listFilter{}) },
		"status": func(a *app) error { return a.runStatus(t.Context(), s.view) },
	} {
		if out, _, _ := say(t, false, look); !strings.Contains(out, sameNumberWords) || !strings.Contains(out, "Huber 1 neu") {
			t.Errorf("%s does not name both:\n%s", name, out)
		}
	}
	out, _, _ := say(t, true, func(a *app) error { return a.runList(t.Context(), s.view, listFilter{}) })
	var rows []present.ListRow
	for line := range strings.Lines(out) {
		var r present.ListRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	strange, second, first := rows[0], rows[1], rows[2]
	if w := second.Warnings; len(w) != 1 || w[0].What != "same-number" || w[0].Text != sameNumberWords || *w[0].Entry != first.Key {
		t.Errorf("%+v", w)
	}
	if w := strange.Warnings; len(w) != 1 || w[0].What != "strange-date" || w[0].Entry != nil || !strings.Contains(w[0].Text, "2026-10-31 can hardly be right") {
		t.Errorf("%+v", w)
	}
	if len(first.Warnings) != 0 {
		t.Errorf("the first one: %+v", first.Warnings)
	}
}

// I26: status names what is unusual until a person has looked at it, and for a month at most.
func TestStatus_I26_UnusualUntilLookedAt(t *testing.T) {
	named := func(s *shelf) string {
		got, err := s.collectStatus()
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, n := range got.Needs {
			if words = append(words, n.What); n.When != "soon" || n.Count != 1 || len(n.Names) != 1 {
				t.Errorf("%+v", n)
			}
		}
		return strings.Join(words, " ")
	}
	s := unusual(t)
	if got := named(s); got != "same-number strange-date" {
		t.Errorf("needs %q", got)
	}
	out, errs, code := say(t, false, func(a *app) error {
		return a.runDecision(t.Context(), s.view, closeAct(), "Huber 1 neu", "both are right")
	})
	if code != exitDone || !strings.Contains(out, "It counts as looked at") {
		t.Errorf("close: %d\n%s%s", code, out, errs)
	}
	if got := named(s); got != "strange-date" {
		t.Errorf("needs %q after one was looked at", got)
	}
	if out, _, _ := say(t, false, func(a *app) error { return a.runShow(t.Context(), s.view, "Huber 1 neu") }); !strings.Contains(out, sameNumberWords) || !strings.Contains(out, "looked at") {
		t.Errorf("show forgot it:\n%s", out)
	}
	if _, _, code := say(t, false, func(a *app) error { return a.runDecision(t.Context(), s.view, closeAct(), "Huber 1 neu", "again") }); code == exitDone {
		t.Error("closed twice")
	}
	later := s.view
	later.Now = noon.Add(ledger.ReviewPeriod)
	got, err := later.collectStatus()
	if err != nil || slices.ContainsFunc(got.Needs, func(n present.Need) bool { return n.What == "strange-date" }) {
		t.Errorf("%v, still named after a month: %+v", err, got.Needs)
	}
}
