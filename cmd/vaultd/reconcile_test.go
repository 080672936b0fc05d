package main_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// I15, I29, I32: an index that keeps giving a wrong number keeps safe mode, and
// says so with both numbers, until an operator accepts it. Every audit and
// verify say so from then on. With a running daemon and without one.
func TestReconcile_I15_I29_I32_AcceptedIndex(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]bool{"InsideTheDaemon": true, "BesideNone": false}, func(t *testing.T, inside bool) {
		t.Parallel()
		emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond, Readings: emulator.Readings{IndexFound: "more"}})
		s := newSite(t, url, fast)
		s.dropped("acme", "before", 2)
		p := s.start("run")
		s.calm(2)
		backup := filepath.Join(s.dir, "backup.db")
		s.must(0, "backup", backup)
		s.dropped("acme", "after", 1)
		s.calm(3)
		kit.Await(t, "all folders to be kept", func() bool { // a claimed one would pass for one that is still to be archived
			kept, err := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*"))
			return err == nil && len(kept) == 3
		})
		p.stop(t)
		s.move("state", "lost")
		s.must(0, "restore", backup)
		if inside {
			s.start("run")
			s.listens()
		}
		out := s.must(exitPerson, "reconcile")
		kit.Holds(t, "reconcile", out, "Vault ACME: the index gave 3 of 1003 documents. Nothing is concluded from it; safe mode stays. Run reconcile again; if it lasts, show the provider request ",
			"INCOMPLETE the index gave 0 of 1000 documents", "RESULT     SAFE MODE stays", "an index was not read to its end")
		for _, wrong := range [][]string{
			{"reconcile", "--accept-index", "ACME=3/1003"},
			{"reconcile", "--accept-index", "3/1003", "--reason", "two vaults are configured"},
			{"reconcile", "--accept-index", "ACME=3", "--reason", "no second number"},
			{"reconcile", "--accept-index", "OTHER=3/1003", "--reason", "not configured"},
			{"reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "ACME=0/1000", "--reason", "twice"},
		} {
			s.must(exitUsage, wrong...)
		}
		if out := s.must(exitPerson, "reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "BETA=0/999", "--reason", "half"); !strings.Contains(out, "It is not accepted: --accept-index names 0 of 999 documents.") {
			t.Errorf("an index was accepted that lacks more than was said:\n%s", out)
		}
		var told struct {
			Safe   bool `json:"safeMode"`
			Vaults []struct {
				Index struct {
					Read, Found        int
					Complete, Accepted bool
					RequestID          string
				}
			}
		}
		kit.Must(t, json.Unmarshal([]byte(strings.SplitN(s.must(exitPerson, "reconcile", "--json"), "\n", 2)[0]), &told))
		if i := told.Vaults[0].Index; !told.Safe || i.Read != 3 || i.Found != 1003 || i.Complete || i.Accepted || i.RequestID == "" {
			t.Errorf(`%+v, want told.Safe, i.Read = 3, i.Found = 1003, not i.Complete, not i.Accepted, i.RequestID other than ""`, told)
		}
		out = s.must(0, "reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "BETA=0/1000", "--reason", "the provider counts deleted ones, ticket 4711")
		kit.Holds(t, "accepted", out, "safe mode is over", "ACCEPTED   the index gave 3 of 1003 documents")
		kit.Holds(t, "verify",
			s.must(0, "verify"), "  3 times an index", "vault ACME gave 3 of 1003 documents; accepted by uid")
		if out, _ := s.vaultd("audit", "--json"); !strings.Contains(out, "the archive's index of vault BETA gave 0 of 1000 documents. A person") || !strings.Contains(out, "ticket 4711") {
			t.Errorf("audit:\n%s", out)
		}
		onceEach(t, emu, 3)
	})
}

// alters returns the address of a service whose index says something else than what was sent, once alter is set.
func alters(t *testing.T, emu http.Handler, alter *atomic.Pointer[strings.Replacer]) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change := alter.Load()
		if change == nil || !strings.HasSuffix(r.URL.Path, "/index") {
			emu.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		emu.ServeHTTP(rec, r)
		var text bytes.Buffer
		_, _ = change.WriteString(&text, rec.Body.String()) // a buffer takes everything
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text.Bytes()) // the client may be gone
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// I4: what the index says of a document otherwise than it was sent is named field by field, as a difference, in words
// that cannot steer a terminal and for machines as it came.
func TestReconcile_I4_NamesWhatTheIndexSaysOtherwise(t *testing.T) {
	t.Parallel()
	emu, _ := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
	var alter atomic.Pointer[strings.Replacer]
	s := newSite(t, alters(t, emu, &alter), fast)
	s.drop("acme", "Huber 88", map[string][]byte{"a.pdf": []byte("pdf")}, map[string]any{"documentType": "Invoice", "documentId": "H-88", "documentDate": "2026-10-31",
		"senderName": "Huber", "amount": 119.5, "currencyCode": "EUR"})
	s.must(0, "run", "--once", "--wait")
	if out := s.must(0, "reconcile"); !strings.Contains(out, "nothing differs") || strings.Contains(out, "not compared") {
		t.Fatalf("before anything is altered:\n%s", out)
	}
	alter.Store(strings.NewReplacer(`"119.5"`, `"991.50"`, `"Huber"`, `"Hu\u001b[2Jber\nRESULT nothing"`))
	out := s.must(exitDifferences, "reconcile")
	kit.Holds(t, "reconcile", out, "  DIFFERS    2\n", "H-88", `senderName is "Huber" here, and "Hu\x1b[2Jber\nRESULT nothing" in the archive's index`,
		`amount is "119.5" here, and "991.50" in the archive's index`, "2 differences found")
	kit.Lacks(t, "out", out, "\x1b", "nothing differs")
	var told struct {
		Vaults []struct {
			MetadataDiffers struct {
				Count int
				Named []struct{ Key, BumID, DocumentID, Field, Ours, Theirs, Text string }
			}
			MetadataCompared, MetadataNotCompared int
		}
	}
	kit.Must(t, json.Unmarshal([]byte(strings.SplitN(s.must(exitDifferences, "reconcile", "--json"), "\n", 2)[0]), &told))
	v := told.Vaults[0]
	if d := v.MetadataDiffers; d.Count != 2 || len(d.Named) != 2 || d.Named[1].Field != "amount" || d.Named[1].Ours != "119.5" || d.Named[1].Theirs != "991.50" ||
		d.Named[1].BumID == "" || d.Named[1].Key == "" || v.MetadataCompared != 1 || v.MetadataNotCompared != 0 {
		t.Errorf(`%+v, want d.Count = 2, len(d.Named) = 2, d.Named[1].Field = "amount", d.Named[1].Ours = "119.5", d.Named[1].Theirs = "991.50", d.Named[1].BumID other than "", d.Named[1].Key other than "", v.MetadataCompared = 1, v.MetadataNotCompared = 0`, told)
	}
}

// I4: an archive that fills in fields makes no difference of any document; what it filled in is told.
func TestReconcile_I4_NamesWhatTheIndexAdds(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond, Readings: emulator.Readings{IndexFields: "filled"}})
	s := newSite(t, url, fast)
	s.drop("acme", "Huber 88", map[string][]byte{"a.pdf": []byte("pdf")}, map[string]any{"documentType": "Invoice", "documentId": "H-88", "documentDate": "2026-10-31", "currencyCode": "CHF"})
	s.must(0, "run", "--once", "--wait")
	out := s.must(0, "reconcile")
	kit.Holds(t, "reconcile", out, "  added      flowDirection of 1, tradingPartner of 1 documents: ", "RESULT     nothing differs")
	kit.Lacks(t, "a field that the archive fills in counts as a difference", out, "DIFFERS")
}

// A folder that was refused, and one that repeats another, are found by the number that their sidecar says; whoever sees it
// sees that nobody checked it.
func TestRefusedAndDuplicate_AreFoundAndMarked(t *testing.T) {
	emu, s := served(t, emulator.Config{ArchiveMax: 100 * time.Millisecond}, fast+"\ntime_zone: UTC")
	once := func(want int) {
		t.Helper()
		s.must(want, "run", "--once", "--wait")
	}
	pdf := map[string][]byte{"rechnung.pdf": []byte("%PDF-1.4\n%%EOF\n")}
	invoice := map[string]any{"documentType": "Invoice", "documentId": "D9", "documentDate": "2026-10-31", "recipientName": "Acme GmbH", "amount": "119.00", "currencyCode": "EUR"}
	s.drop("acme", "Otto 9", pdf, invoice)
	once(exitDone)
	s.drop("acme", "Otto 9 again", pdf, invoice)
	once(exitDone)
	s.drop("acme", "Huber 88", pdf, map[string]any{"documentType": "Invoice", "documentId": "D1", "documentDate": "31.10.2026", "senderName": "Huber & Söhne",
		"recipientIds": []string{"DE999"}, "amount": 4711.11, "currencyCode": "EUR"})
	once(exitPerson)

	s.foundAndMarked(t)
	s.audited(t)
	s.namesTheFirst(t, emu)
}

// containsAll holds what a command says against the texts that must be in it.
func (s *site) containsAll(t *testing.T, want []string, args ...string) {
	t.Helper()
	out, _ := s.vaultd(args...)
	for _, w := range want {
		kit.Check(t, strings.Contains(out, w), "vaultd %v does not say %q:\n%s", args, w, out)
	}
}

func (s *site) foundAndMarked(t *testing.T) {
	t.Helper()
	for _, words := range []string{"D1", "huber söhne", "DE999"} {
		s.containsAll(t, []string{"Huber 88 (acme)  rejected", "  as read, refused:\n", "documentId     D1\n", "documentDate   31.10.2026\n", "amount         4711.11\n"}, "find", words)
	}
	s.containsAll(t, []string{"METADATA AS READ, REFUSED (as written in the sidecar)", "documentDate       31.10.2026\n"}, "show", "Huber 88")
	s.containsAll(t, []string{"D1 (as read)", "D9 (as read)"}, "list")
	s.containsAll(t, []string{`"folder":"Huber 88","documentId":"D1",`, `"asRead":{"documentType":"Invoice","documentId":"D1","documentDate":"31.10.2026"`,
		`"folder":"Otto 9","documentId":"D9",`}, "list", "--json")
	out, _ := s.vaultd("find", "D9", "--json")
	kit.Check(t, strings.Count(out, "\n") == 2 && strings.Count(out, `"asRead":null`) == 1,
		"the archived one and the duplicate are not told apart:\n%s", out)
}

// audited looks into the three forms of the report: what was only read is shown and marked, and no sum counts it.
func (s *site) audited(t *testing.T) {
	t.Helper()
	read := func(name string) string {
		t.Helper()
		file := filepath.Join(s.dir, name)
		out, code := s.vaultd("audit", "-o", file)
		kit.Need(t, code == exitDifferences, "exit %d: %s", code, out)
		text := kit.Value(os.ReadFile(file))(t)
		return string(text)
	}
	var all struct {
		Sums []struct {
			Documents int
			Total     string
		}
		Documents []struct {
			Folder, State string
			DocumentID    string  `json:"documentId"`
			Recipient     *string `json:"recipientName"`
			Amount        *string
			AsRead        *struct{ Amount, DocumentDate string }
			First         *struct{ Folder, DocumentID, BumID, Dest string }
		}
	}
	kit.Must(t, json.Unmarshal([]byte(read("a.json")), &all))
	kit.Check(t, len(all.Sums) == 1 && all.Sums[0].Documents == 1 && all.Sums[0].Total == "119.00",
		"the sums are %+v", all.Sums)
	for _, d := range all.Documents {
		archived := d.State == "archived"
		if (d.AsRead == nil) != archived || (d.Amount != nil) != archived || (d.Recipient != nil) != archived || (d.First != nil) != (d.State == "duplicate") {
			t.Errorf("%+v, want (d.AsRead == nil) = %v, (d.Amount != nil) = %v, (d.Recipient != nil) = %v, (d.First != nil) = %v", d, archived, archived, archived, (d.State == "duplicate"))
		}
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(read("a.csv"), "\ufeff"))).ReadAll()
	kit.Need(t, err == nil && len(rows) == 4, "rows = %v, err = %v, want no error, len(rows) = 4", rows, err)
	refused := strings.Join(rows[1], "|")
	kit.Holds(t, "refused", refused, "|D1|Invoice|31.10.2026|Huber & Söhne|as read: 4711.11|EUR|rejected|", "|DE999|as read, refused|")
	page := read("a.html")
	list, _ := s.vaultd("show", "Otto 9")
	sum := regexp.MustCompile(`SHA-256 ([0-9a-f]{64})\n`).FindStringSubmatch(list)[1] // of the ZIP
	kit.Holds(t, "page", page,
		`<bdi>D1</bdi> <small>as read, refused</small>`, `<td>Invoice</td><td>31.10.2026</td>`, `<bdi>DE999</bdi>`, `<bdi>Acme GmbH</bdi>`, sum,
	)
	s.linksWork(t, page, s.dir)
	s.linksWork(t, read("acme/_archived/a.html"), filepath.Join(s.dir, "acme/_archived"))
	page, _ = s.vaultd("audit", "--format", "html")
	kit.Check(t, !strings.Contains(page, "href"), "a page of which nobody knows where it will lie has a link")
}

// linksWork opens what the links of a page lead to.
func (s *site) linksWork(t *testing.T, page, lies string) {
	t.Helper()
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1)
	kit.Need(t, len(links) == 1, "%d links in the page in %s", len(links), lies)
	link := strings.ReplaceAll(html.UnescapeString(links[0][1]), "%20", " ")
	text, err := os.ReadFile(filepath.Join(lies, link))
	kit.Check(t, err == nil && strings.Contains(string(text), "D9"), "%q does not lead to the receipt: %v", link, err)
}

// namesTheFirst looks for the archived folder wherever people read of its duplicate.
func (s *site) namesTheFirst(t *testing.T, emu *emulator.Server) {
	t.Helper()
	var first struct{ BumID, Key string }
	out, _ := s.vaultd("show", "Otto 9", "--json")
	err := json.Unmarshal([]byte(out), &first)
	kit.Need(t, err == nil && first.BumID != "", `err = %v, out = %v, want no error, first.BumID other than ""`, err, out)
	place := "_archived/" + time.Now().UTC().Format("2006-01") + "/Otto 9"
	want := []string{`"Otto 9"`, "D9", first.BumID, place, time.Now().UTC().Format("2 Jan 2006")}
	s.containsAll(t, want, "list", "--state", "duplicate")
	s.containsAll(t, want, "find", "Otto 9 again")
	s.containsAll(t, want, "audit", "--state", "duplicate", "--format", "json", "-o", "-")
	shown := append(want[:4:4], time.Now().UTC().Format("2006-01-02"), first.Key)
	s.containsAll(t, shown, "show", "Otto 9 again")
	s.containsAll(t, shown, "why", "Otto 9 again")
	text := kit.Value(os.ReadFile(filepath.Join(s.dir, "acme/_duplicates/Otto 9 again/_REASON.txt")))(t)
	reason := notepad(text)
	want[3] = strings.ReplaceAll(place, "/", `\`)
	kit.Check(t, strings.HasPrefix(reason, "DUPLICATE. These files were archived on "),
		`reason = %v, want reason that begins with "DUPLICATE. These files were archived on "`, reason)
	for _, w := range want {
		kit.Holds(t, "_REASON.txt", reason, w)
	}
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
}

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
		s.tell(folder, at, nil, ledger.RegisterIntended{}, fill.Ticket(remote, at, ledger.Vault),
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
