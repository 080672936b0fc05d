package present

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// foreignWords are what no text about a document of a route may say: it has nothing of the kind.
var foreignWords = map[ledger.Route][]string{
	ledger.PDF:     {"archive", "zip", "business network"},
	ledger.Network: {"archiv", "zip", "pdf", "accounts-payable", "clientuuid", "vault:", "upload address"},
}

// statesOf are the states that a document of a route can be in.
func statesOf(r ledger.Route) []ledger.State {
	switch r {
	case ledger.PDF:
		return pdfStates
	case ledger.Network:
		return []ledger.State{ledger.Discovered, ledger.Packaged, ledger.Registering, ledger.Registered, ledger.Sending, ledger.Uploaded, ledger.Delivered, ledger.Duplicate, ledger.Rejected, ledger.Quarantined}
	}
	return ledger.States()
}

// markedEntries are entries of one route and state with each mark that people are told of, and with each that goes with it.
func markedEntries(r ledger.Route, state ledger.State) (all []ledger.Entry) {
	base := ledger.Entry{Key: archive.Key{1}, Rev: 1, Route: r, Drop: "out", Folder: "Huber 88", State: state, Source: ledger.Claimed, SeenAt: noon, Posts: 2, Answers: 1, ID: archive.ID{1},
		Package: archive.Package{Size: 1, SHA256: archive.Digest{1}}, Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "number-1"}, Fate: ledger.MaybeStored, UploadIntents: 1}}}
	if r == ledger.Vault {
		base.Vault = "V"
	}
	switch state {
	case ledger.Delivered:
		base.UploadedAt, base.Source, base.Dest = noon, ledger.Kept, "_delivered/2026-11/Huber 88"
	case ledger.Rejected:
		base.Source, base.Dest = ledger.Returned, "_rejected/Huber 88"
	case ledger.Quarantined:
		base.Cause = ledger.DeliveryUnknown("the sending was never answered")
	}
	for _, mark := range []func(e *ledger.Entry){
		func(*ledger.Entry) {}, func(e *ledger.Entry) { e.Hold = true }, func(e *ledger.Entry) { e.InDoubt = true }, func(e *ledger.Entry) { e.PossibleDouble = true },
		func(e *ledger.Entry) { e.Contradicted = true }, func(e *ledger.Entry) { e.Resolved = true }, func(e *ledger.Entry) { e.Contradicted, e.Resolved = true, true },
		func(e *ledger.Entry) { e.Recipient = ledger.RecipientAccepted }, func(e *ledger.Entry) { e.Recipient = ledger.RecipientRejected }, func(e *ledger.Entry) { e.Means = ledger.EmailDelivery },
		func(e *ledger.Entry) { e.Cause = ledger.Cause{Code: ledger.CauseNumberTaken} }, func(e *ledger.Entry) { e.Cause = ledger.Cause{Code: ledger.CauseSourceChanged} },
		func(e *ledger.Entry) { e.NeedsReconcile = true }, func(e *ledger.Entry) { e.FilesUnderWay, e.LostFiles, e.StoredFiles = 1, 1, []archive.FileID{"f"} },
		func(e *ledger.Entry) { e.ID, e.Registrations = archive.ID{}, nil },
	} {
		e := base
		mark(&e)
		all = append(all, e)
		for f := ledger.Unsent; f <= ledger.Declined && len(e.Registrations) > 0; f++ {
			e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "number-1"}, Fate: f, UploadIntents: 1}}
			all = append(all, e)
		}
	}
	return all
}

// textsOf is all that show and why say of an entry, and why each act is refused.
func textsOf(e ledger.Entry) string {
	d := Dossier{Entry: e, HasDocument: true, Document: ledger.Document{Metadata: []byte("{}"), Files: []archive.File{{Path: "a.xml"}}, ControlFiles: []archive.File{{Path: "document.json"}}},
		History: []ledger.Line{{Rev: 1, Event: "notification-seen", Status: "Delivered"}}}
	if e.Route == ledger.PDF {
		d.Addresses = []Field{{"receivingEmailAddress", "ap@in.example"}}
	}
	if e.State == ledger.Duplicate {
		d.Details.Original = &Original{Key: "k", Folder: "Otto 9", DeliveredAt: &noon}
	}
	c := Clock{Now: noon.Add(100 * time.Hour), Location: time.UTC}
	w := Situation{Clock: c, UnclearGrace: time.Hour, AlertAfter: time.Minute, FolderPath: "/srv/out/_rejected/Huber 88"}.Explain(d)
	text := string(d.Text(c)) + string(w.Text(c)) + DescribePlace(e) + SummarizeReason(e)
	for _, act := range []Action{Close, Release, Hold, Unhold, Retry} {
		if err := act.Check(e); err != nil {
			text += "\n" + act.ExplainRefusal(e, err)
		}
	}
	return text
}

// I12: whatever a document of any route comes to, people are told something of it, and nothing that belongs to another route: a document that is
// sent over the business network is no PDF, goes to no accounts-payable system, and is never called archived.
func TestWords_I12_EachRouteHasItsOwn(t *testing.T) {
	for _, r := range ledger.Routes() {
		_, ok := rows[r]
		kit.Check(t, ok, "route %s has no words", r)
		for _, state := range statesOf(r) {
			for _, e := range markedEntries(r, state) {
				text := textsOf(e)
				kit.Need(t, !strings.Contains(text, unknownState) && !strings.Contains(text, "%!") && explainState(e) != "",
					`%s, %s: %s, want text without %q, text without "%%!", explainState(e) other than ""`, r, state, text, unknownState)
				small := strings.ToLower(strings.ReplaceAll(text, "Delivered is not archived", "")) // the only place that compares the two
				for _, word := range foreignWords[r] {
					kit.Need(t, !strings.Contains(small, word), "%s, %s: it says %q: %s", r, state, word, text)
				}
				for _, flag := range ExplainFlags(e) {
					kit.Check(t, flag != "", "%s, %s: an empty flag", r, state)
				}
				for _, o := range (Situation{}).Options(Dossier{Entry: e}) {
					kit.Check(t, o.What != "", "%s, %s: an empty option %q", r, state, o.Command)
				}
				if step, _, due := ledger.Due(e); due && slices.Contains(statesOf(r), state) && !(r == ledger.PDF && step == ledger.Ask) && ExplainStep(e, step) == "" {
					t.Errorf("%s, %s: nothing is said of %s", r, state, step)
				}
			}
		}
	}
}

// What a person must see to of a network document is told with what to do: why and show name it, each act says what it leads to.
func TestWords_I26_NetworkDocumentsThatNeedAPerson(t *testing.T) {
	base := ledger.Entry{Key: archive.Key{1}, Rev: 1, Route: ledger.Network, Drop: "out", Folder: "Huber 88", SeenAt: noon, Package: archive.Package{Size: 1, SHA256: archive.Digest{1}},
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "number-1"}, Fate: ledger.MaybeStored}}}
	for name, row := range map[string]struct {
		change func(e *ledger.Entry)
		want   []string
	}{
		"RejectedAfterDelivery": {func(e *ledger.Entry) { e.State, e.Source, e.Contradicted = ledger.Delivered, ledger.Kept, true },
			[]string{"CONTRADICTED: the business network rejected it after it had delivered it", "ask the provider why", "drop it again as a new document", "it is cleared up with the provider"}},
		"RejectedByRecipient": {func(e *ledger.Entry) {
			e.State, e.Source, e.Recipient, e.Means = ledger.Delivered, ledger.Kept, ledger.RecipientRejected, ledger.EmailDelivery
		}, []string{"REJECTED BY THE RECIPIENT", "ask the recipient why", "by e-mail", "the recipient rejected it"}},
		"NoWordForLong": {func(e *ledger.Entry) { e.State, e.Source = ledger.Uploaded, ledger.Claimed },
			[]string{"no final word for", "ask the provider what became of it", "wait: its word comes as a notification"}},
		"NumberTaken": {func(e *ledger.Entry) {
			e.State, e.Source, e.Cause = ledger.Quarantined, ledger.Claimed, ledger.Cause{Code: ledger.CauseNumberTaken}
		}, []string{"number taken", "vaultd never sent one under bumId number-1", "vaultd close", "send it under a new number: the recipient gets it twice"}},
		"RecipientNotListed": {func(e *ledger.Entry) {
			e.State, e.Source, e.Registrations, e.NotBefore = ledger.Packaged, ledger.Claimed, nil, noon.Add(time.Hour)
			e.Cause = ledger.Cause{Code: ledger.CauseRecipientNotListed, Text: "NOT SENT YET. SIREN 123456789 has no valid line in the directory (asked 14:02). Check it with the recipient."}
		}, []string{"recipient not listed", "SIREN 123456789 has no valid line in the directory (asked 14:02)", "check the number with the recipient", "give it back to people: nothing of it was sent\n      vaultd close"}},
		"DeliveryUnknown": {func(e *ledger.Entry) {
			e.State, e.Source, e.Cause = ledger.Quarantined, ledger.Claimed, ledger.DeliveryUnknown("the ledger was put back")
		}, []string{"delivery unknown", "ask the provider whether the business network has it; the number to name is bumId number-1", "no double can come of it\n      vaultd release", "vaultd close"}},
		"RejectedByNetwork": {func(e *ledger.Entry) {
			e.State, e.Source, e.Dest, e.UploadedAt, e.Cause = ledger.Rejected, ledger.Returned, "_rejected/Huber 88", noon, ledger.Cause{Code: "undelivered", Text: "NOT DELIVERED. No such recipient."}
		}, []string{"Not delivered", "correct it as _REASON.txt in the folder says", "take it again"}},
	} {
		e := base
		row.change(&e)
		kit.Holds(t, name, textsOf(e), row.want...)
	}
}

// I12: of a cause the ledger keeps facts; what people read about a document has
// them, names only things of its own route, and says what each decision does.
func TestCauseText_I12_EachRouteHasItsOwn(t *testing.T) {
	const facts = `6ba7, dropped as "Otto 9"`
	for _, r := range ledger.Routes() {
		codes := []string{ingest.CauseClaimedMissing, ingest.CauseUnderWay, ingest.CauseIdentityTaken, ledger.CauseClosedInDoubt}
		if !r.IsAsked() {
			codes = append(codes, ledger.CauseDeliveryUnknown)
		}
		for _, code := range codes {
			text := CauseText(ledger.Entry{Route: r, Cause: ledger.Cause{Code: code, Text: facts}})
			what := fmt.Sprintf("%s of route %s", code, r)
			kit.Holds(t, what, text, facts)
			kit.Check(t, text != facts && !strings.Contains(text, "%"), "%s = %q, want the facts in words", what, text)
			kit.Lacks(t, what, text, map[ledger.Route][]string{ledger.PDF: {"archive", "clientUUID", "network"}, ledger.Network: {"archive", "clientUUID", "PDF", "accounts-payable"}}[r]...)
			if code == ledger.CauseDeliveryUnknown {
				kit.Holds(t, what, text, "cannot be asked", "vaultd close", "vaultd release")
			}
		}
	}
	kit.Holds(t, "given back", CauseText(ledger.Entry{Cause: ledger.Cause{Code: ledger.CauseGivenBack}}), "Ask IT why")
	kit.Want(t, "another cause", CauseText(ledger.Entry{Cause: ledger.Cause{Code: "http-403", Text: "refused"}}), "refused")
}

// A refusal of our own is told in brief by its code, whichever route it is of.
func TestWords_OwnRefusalsInBrief(t *testing.T) {
	for _, begin := range []string{"NOT ARCHIVED", "NOT SENT", "NOT DELIVERED"} {
		kit.Want(t, begin, SummarizeReason(ledger.Entry{Cause: ledger.Cause{Code: "strange-file", Text: begin + ". A long page."}}), "strange file")
	}
	kit.Want(t, "in brief", SummarizeReason(ledger.Entry{Cause: ledger.Cause{Code: "http-403", Text: "credentials refused"}}), "credentials refused")
}

// The addresses of a document come by the names of its service; one of the archive has none.
func TestDelivery_Addresses(t *testing.T) {
	invoice := archive.Document{Type: "Invoice", RecipientName: "Acme AG"}
	for metadata, want := range map[string][]Field{
		string(invoice.Metadata()): nil,
		`{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":""}`: {{"receivingEmailAddress", "ap@in.example"}},
	} {
		kit.Want(t, metadata, kit.Value(deliveryFields(ledger.Document{Metadata: []byte(metadata)}))(t), want)
	}
	_, err := deliveryFields(ledger.Document{Metadata: []byte(`{"receivingEmailAddress":[1]}`)})
	kit.Check(t, err != nil, "an address of a strange form is read")
}

// The recipient of a document, for list and show, comes from one place: its frozen metadata, or what was read of one that was refused.
func TestDetails_Recipient(t *testing.T) {
	meta := archive.Document{Type: "Invoice", RecipientName: "Acme AG", RecipientIDs: []string{"4012345000009"}}
	for name, row := range map[string]struct {
		route ledger.Route
		doc   ledger.Document
		want  string
	}{
		"Network": {ledger.Network, ledger.Document{Metadata: meta.Metadata()}, "Acme AG, 4012345000009"},
		"PDF":     {ledger.PDF, ledger.Document{Metadata: archive.PDFRequest{Receiving: "ap@in.example", Notify: "x@in.example"}.Encode()}, "ap@in.example"},
		"Refused": {ledger.Network, ledger.Document{AsRead: archive.AsRead{RecipientName: "Acme AG", RecipientIDs: "1, 2"}}, "Acme AG, 1, 2"},
		"Erased":  {ledger.Network, ledger.Document{}, ""},
	} {
		e := ledger.Entry{Key: archive.Key{1}, Route: row.route, State: ledger.Delivered, Means: ledger.EmailDelivery}
		checked := kit.Value(ParseMetadata(e, row.doc))(t)
		to, err := readRecipient(row.doc, checked)
		r := NewListRow(Clock{Now: noon, Location: time.UTC}, e, Details{Recipient: to})
		if err != nil || to != row.want || (r.Recipient == nil) != (to == "") || r.Means == nil || *r.Means != "EmailDelivery" {
			t.Errorf(`%s: %q, %v, %+v, want no error, to = %v, (r.Recipient == nil) = %v, r.Means other than nil, *r.Means = "EmailDelivery"`, name, to, err, r, row.want, (to == ""))
		}
	}
}

// Each reason has its own words.
func TestAction_EveryReasonHasWords(t *testing.T) {
	said := map[string]ledger.IllegalReason{}
	for r := range ledger.EndOfReasons {
		text := explainIllegal(ledger.Entry{State: ledger.Quarantined}, r)
		before, twice := said[text]
		kit.Check(t, !twice && text != "", "%s and %s: %q", before, r, text)
		said[text] = r
	}
}

// pdfStates are the states that a PDF can be in.
var pdfStates = []ledger.State{ledger.Discovered, ledger.Packaged, ledger.Registering, ledger.Registered, ledger.Sending, ledger.Delivered, ledger.Duplicate, ledger.Rejected, ledger.Quarantined}

// A PDF whose delivery is unconfirmed: why says so, where to look, and what
// each decision does.
func TestDelivery_I2_UnknownSaysWhatToDo(t *testing.T) {
	e := ledger.Entry{Key: archive.Key{1}, Route: ledger.PDF, Drop: "ap-scans", Folder: "scan7.pdf", State: ledger.Quarantined, Source: ledger.Claimed, Cause: ledger.DeliveryUnknown("the upload was never answered"),
		Package: archive.Package{Size: 1, SHA256: archive.Digest{1}}, Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "slot-1"}, Fate: ledger.MaybeStored}}}
	c := Clock{Now: noon, Location: time.UTC}
	w := Situation{Clock: c}.Explain(Dossier{Entry: e})
	kit.Check(t, w.Route == "pdf" && len(w.Evidence) == 0, `%+v, want w.Route = "pdf", len(w.Evidence) = 0`, w)
	text := string(w.Text(c))
	kit.Holds(t, "the text", text, "Because       delivery unknown", "look for it in the accounts-payable system", "its number is bumId slot-1", "send it again (possibly processed twice)\n      vaultd release", "it is there, or you give it up", "vaultd close")
}

// A list's row says by which route an entry goes. A delivered one has the time
// of its delivery instead of an upload's.
func TestDelivery_RowHasItsOwnTime(t *testing.T) {
	for _, row := range []struct {
		e                   ledger.Entry
		route               string
		uploaded, delivered bool
	}{
		{ledger.Entry{Route: ledger.PDF, State: ledger.Delivered, UploadedAt: noon}, "pdf", false, true},
		{ledger.Entry{Route: ledger.Vault, State: ledger.Archived, UploadedAt: noon, ArchivedAt: noon}, "vault", true, false},
		{ledger.Entry{Route: ledger.Vault, State: ledger.Uploaded, UploadedAt: noon}, "vault", true, false},
	} {
		r := NewListRow(Clock{Now: noon, Location: time.UTC}, row.e, Details{})
		if r.Route != row.route || (r.UploadedAt != nil) != row.uploaded || (r.DeliveredAt != nil) != row.delivered || row.delivered && r.ArchivedAt != nil {
			t.Errorf("%s: %+v", row.e.State, r)
		}
	}
}

// book is a ledger of entries that lack documents.
type book map[archive.Key]ledger.Entry

func (b book) Entry(k archive.Key) (ledger.Entry, bool, error) { e, ok := b[k]; return e, ok, nil }

func (book) Document(archive.Key) (ledger.Document, bool, error) {
	return ledger.Document{}, false, nil
}

// I12: a rejection that a folder of another owner resolves is named with both owners.
func TestFindRemarks_I12_ResolvedByAnotherOwner(t *testing.T) {
	old := ledger.Entry{Key: archive.Key{1}, State: ledger.Rejected, Folder: "Alice 7", Drop: "acme-in", Owner: 900_001}
	for owner, want := range map[uint32]int{900_001: 0, 900_002: 1} {
		all, err := FindRemarks(book{old.Key: old}, ledger.Entry{Key: archive.Key{2}, Supersedes: old.Key, Owner: owner}, time.UTC)
		kit.Need(t, err == nil && len(all) == want, "owner %d: %+v, %v; want %d remarks", owner, all, err, want)
		if want > 0 && (all[0].What != "other-owner" || !strings.Contains(all[0].Text, `"Alice 7" (acme-in)`) || !strings.Contains(all[0].Text, "uid 900001; this is a folder of uid 900002")) {
			t.Errorf("%+v, want both owners named", all[0])
		}
	}
}

// I12: a corrected invoice, with the same number and the same file and another amount,
// is named once, and for its number.
func TestFindRemarks_I12_SameNumberComesFirst(t *testing.T) {
	first := ledger.Entry{Key: archive.Key{1}, State: ledger.Archived, Folder: "Huber 1", Drop: "acme-in"}
	other := archive.Key{3}
	for name, row := range map[string]struct {
		e    ledger.Entry
		want []string
	}{
		"NumberAndFiles": {ledger.Entry{SameNumber: first.Key, SameContent: first.Key}, []string{"same-number: same invoice number, sender, date and files, with other metadata, as \"Huber 1\""}},
		"OfTwoOthers":    {ledger.Entry{SameNumber: first.Key, SameContent: other}, []string{"same-number: same invoice number, sender and date as \"Huber 1\"", "same-content: same files"}},
		"FilesAlone":     {ledger.Entry{SameContent: first.Key}, []string{"same-content: same files, with other metadata, as \"Huber 1\""}},
	} {
		all, err := FindRemarks(book{first.Key: first}, row.e, time.UTC)
		kit.Need(t, err == nil && len(all) == len(row.want), "%s: %+v, %v; want %q", name, all, err, row.want)
		for i, want := range row.want {
			got := all[i].What + ": " + all[i].Text
			kit.Check(t, strings.HasPrefix(got, want), "%s: %q, want it to begin with %q", name, got, want)
		}
	}
	a := (ledger.Entry{State: ledger.Archived, SameNumber: first.Key, SameContent: first.Key}).Attention()
	kit.Check(t, a == ledger.RepeatedNumber, "attention = %d, want %d", a, ledger.RepeatedNumber)
}

// I2, I26: a document that got another identity, because the sidecar of another
// one names its own, is named, and only that document.
func TestFindRemarks_I2_I26_ChosenElsewhere(t *testing.T) {
	content, metadata := archive.Sum([]byte("a")), archive.Sum([]byte("m"))
	derived := archive.DeriveID("V", content, metadata)
	for name, row := range map[string]struct {
		first  archive.ID
		chosen bool
		want   int
	}{
		"Derived": {derived, false, 0}, "Next": {derived.Derivation(1), false, 1}, "Last": {derived.Derivation(archive.MaxDerivation), false, 1},
		"OwnChoice": {derived.Derivation(1), true, 0}, "AGeneration": {derived.Generation(1), false, 0},
	} {
		e := ledger.Entry{Key: archive.Key{2}, State: ledger.Archived, Vault: "V", FirstID: row.first, ID: row.first, IDFromSidecar: row.chosen, Content: content, Metadata: metadata}
		all, err := FindRemarks(book{}, e, time.UTC)
		kit.Need(t, err == nil && len(all) == row.want, "%s: %+v, %v; want %d remarks", name, all, err, row.want)
		if row.want > 0 {
			kit.Want(t, name, all[0].What, "clientuuid-chosen")
			kit.Holds(t, name, all[0].Text, "vaultd show "+derived.String())
		}
	}
}
