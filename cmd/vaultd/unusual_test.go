package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
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
	for _, args := range [][]string{{"show", "Huber 1 neu"}, {"why", "Huber 1 neu"}, {"list"}, {"status"}} {
		if out, _, _ := s.say(args...); !strings.Contains(out, sameNumberWords) || !strings.Contains(out, "Huber 1 neu") {
			t.Errorf("%s does not name both:\n%s", args, out)
		}
	}
	out, _, _ := s.say("list", "--json")
	var rows []present.ListRow
	for line := range strings.Lines(out) {
		var r present.ListRow
		kit.Must(t, json.Unmarshal([]byte(line), &r))
		rows = append(rows, r)
	}
	strange, second, first := rows[0], rows[1], rows[2]
	if w := second.Warnings; len(w) != 1 || w[0].What != "same-number" || w[0].Text != sameNumberWords || *w[0].Entry != first.Key {
		t.Errorf(`%+v, want len(w) = 1, w[0].What = "same-number", w[0].Text = %v, *w[0].Entry = %v`, w, sameNumberWords, first.Key)
	}
	if w := strange.Warnings; len(w) != 1 || w[0].What != "strange-date" || w[0].Entry != nil || !strings.Contains(w[0].Text, "2026-10-31 can hardly be right") {
		t.Errorf(`%+v, want len(w) = 1, w[0].What = "strange-date", w[0].Entry = nil, w[0].Text with "2026-10-31 can hardly be right"`, w)
	}
	kit.Len(t, "the first one", first.Warnings, 0)
}

// I26: status names what is unusual until a person has looked at it, and for a month at most.
func TestStatus_I26_UnusualUntilLookedAt(t *testing.T) {
	named := func(s *shelf) string {
		var words []string
		for _, n := range s.summary().Needs {
			if words = append(words, n.What); n.When != "soon" || n.Count != 1 || len(n.Names) != 1 {
				t.Errorf(`%+v, want n.When = "soon", n.Count = 1, len(n.Names) = 1`, n)
			}
		}
		return strings.Join(words, " ")
	}
	s := unusual(t)
	kit.Want(t, "needs", named(s), "same-number strange-date")
	out, errs, code := s.say("close", "Huber 1 neu", "--reason", "both are right")
	kit.Check(t, code == exitDone && strings.Contains(out, "It counts as looked at"),
		"close: %d\n%s%s", code, out, errs)
	kit.Want(t, "needs", named(s), "strange-date")
	out, _, _ = s.say("show", "Huber 1 neu")
	kit.Check(t, strings.Contains(out, sameNumberWords) && strings.Contains(out, "looked at"), "show forgot it:\n%s", out)
	_, _, code = s.say("close", "Huber 1 neu", "--reason", "again")
	kit.Check(t, code != exitDone, "closed twice")
	got := s.summaryAt(noon.Add(ledger.ReviewPeriod))
	kit.Check(t, !slices.ContainsFunc(got.Needs, func(n present.Need) bool { return n.What == "strange-date" }),
		"still named after a month: %+v", got.Needs)
}
