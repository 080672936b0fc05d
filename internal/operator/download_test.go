package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// tray is an archive that gives one package. Before it does, it looks into the journal.
type tray struct {
	t      *testing.T
	ledger *fill.Ledger
	err    error
	meet   func() // in the middle of a download; nil: nothing happens
	asks   int
}

func (s *tray) Download(_ context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	s.asks++
	if last := lastLine(s.t, s.ledger.Ledger); last.Event != ledger.MarkFetchIntended || last.Vault != string(v) || last.Remote != string(r) || last.UID == nil || *last.UID != 7 {
		s.t.Errorf("the journal ends with %+v when the archive is asked, want the intent for %s of vault %s by 7", last, r, v)
	}
	if s.meet != nil {
		s.meet()
	}
	n, err := io.WriteString(w, "PK")
	return int64(n), archive.Sum([]byte("PK")), errors.Join(err, s.err)
}

func lastLine(t *testing.T, l *boltledger.Ledger) (last ledger.Line) {
	t.Helper()
	kit.Must(t, l.Lines(l.Head().N, func(_ uint64, line []byte) (err error) {
		last, err = ledger.ParseLine(line)
		return err
	}))
	return last
}

// downloading makes a ledger, and a way to downloads of it at a time that stands still.
func downloading(t *testing.T, budget uint64) (Downloads, *tray) {
	t.Helper()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := fill.New(t, boltledger.Config{}, ledger.Info{Created: at})
	from := &tray{t: t, ledger: l}
	return Downloads{Ledger: l.Ledger, Archive: from, Budget: budget, Now: func() time.Time { return at }}, from
}

func (d Downloads) get(ctx context.Context, remote string, outcome string) (Fetched, error) {
	return d.Fetch(ctx, "V", archive.RemoteID(remote), Person{UID: 7}, io.Discard, func(Fetched) string { return outcome })
}

// I29: each download is a line before the archive is asked and one after it, whatever came of it and whoever went away.
func TestFetch_I29_ALineBeforeAndOneAfter(t *testing.T) {
	d, from := downloading(t, 9)
	for _, outcome := range []string{ledger.FetchSame, ledger.FetchRepacked, ledger.FetchDiffers, ledger.FetchNotCompared} {
		kit.Value(d.get(t.Context(), "b1", outcome))(t)
		if last := lastLine(t, from.ledger.Ledger); last.Event != ledger.MarkFetched || last.Cause != outcome || last.Size != 2 || last.Remote != "b1" || *last.UID != 7 {
			t.Errorf("the journal ends with %+v, want the download of b1 by 7 as %s, with 2 bytes", last, outcome)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	from.err, from.meet = errors.New("broken off"), leave
	kit.Fails(t, "error", kit.Err(d.get(ctx, "b1", ledger.FetchSame)), from.err)
	last := lastLine(t, from.ledger.Ledger)
	kit.Check(t, last.Event == ledger.MarkFetched && last.Cause == ledger.FetchFailed, "the journal ends with %+v, want a download that failed", last)
	if _, err := d.get(ctx, "b1", ledger.FetchSame); !errors.Is(err, context.Canceled) || from.asks != 5 {
		t.Errorf("with an ended context: error = %v after %d calls, want %v after 5", err, from.asks, context.Canceled)
	}
}

// Why a person downloads stands beside the line that announces it, where it can be erased; the line has its digest, and no name.
func TestFetch_I29_ReasonBesideTheJournal(t *testing.T) {
	d, from := downloading(t, 9)
	const reason = "on the pages, by the user anna"
	kit.Value(d.Fetch(t.Context(), "V", "b1", Person{UID: 7, Reason: reason}, io.Discard, func(Fetched) string { return ledger.FetchSame }))(t)
	notes, err := from.ledger.Notes(archive.Key{})
	kit.Need(t, err == nil && len(notes) == 1, "notes = %v (error %v), want one", notes, err)
	digests := 0
	err = d.Ledger.Lines(1, func(_ uint64, stored []byte) error {
		line, err := ledger.ParseLine(stored)
		kit.Lacks(t, "the text", string(stored), "anna")
		if line.Reason != "" && line.Reason == notes[line.Rev].Digest().String() && notes[line.Rev].Text == reason && line.Event == ledger.MarkFetchIntended {
			digests++
		}
		return err
	})
	kit.Check(t, err == nil && digests == 1, "digests = %d (error %v), want 1", digests, err)
}

// The budget is checked before the archive is asked; a download that never ended counts too.
func TestFetch_BudgetBeforeTheCall(t *testing.T) {
	d, from := downloading(t, 2)
	if _, err := d.Ledger.IntendFetch(t.Context(), ledger.Mark{Vault: "V", Remote: "b1", By: ledger.Operator{UID: 7}, At: d.Now()}, nil, d.Budget); err != nil { // and the power fails
		t.Fatal(err)
	}
	if got, err := d.get(t.Context(), "b1", ledger.FetchSame); err != nil || got.Used != 2 {
		t.Fatalf("fetched = %+v (error %v), want 2 of the budget used", got, err)
	}
	_, err := d.get(t.Context(), "b1", ledger.FetchSame)
	spent, over := errors.AsType[*ledger.BudgetError](err)
	kit.Check(t, over && spent.Used == 2 && from.asks == 1, "error = %v, the archive was asked %d times, want the budget spent, 1", err, from.asks)
	month := d.Now().AddDate(0, 1, 0)
	d.Now = func() time.Time { return month }
	kit.Want(t, "next month: fetched", kit.Value(d.get(t.Context(), "b1", ledger.FetchSame))(t).Used, 1)
	d.Budget = 0
	kit.Want(t, "calls", from.asks, 2)
	_, err = d.get(t.Context(), "b1", ledger.FetchSame)
	kit.Check(t, err != nil && from.asks == 2, "without a budget: error = %v after %d calls, want one after 2", err, from.asks)
}

// I4, I26: a document is compared while its folder is put into _archived. The entry notes the comparison all the same, and the download is kept.
func TestFetch_I4_WhileTheFolderIsPlaced(t *testing.T) {
	d, from := downloading(t, 9)
	at := d.Now()
	it := from.ledger.Add(fill.Item{Name: "Huber 88", Vault: "V", Remote: "b1"})
	it.Store(at)
	it.Apply(at.Add(time.Minute), fill.Seen("b1", archive.Successful, at.Add(time.Minute)))
	asked := 0
	d.Now = func() time.Time {
		if asked++; asked == 3 { // between the entry that was read and the commit about it
			it.Place(at.Add(time.Minute), "_archived/2026-11/Huber 88")
		}
		return at.Add(time.Hour)
	}
	kit.Value(d.get(t.Context(), "b1", ledger.FetchDiffers))(t)
	e := it.Entry()
	kit.Check(t, e.Current().Differs && e.Source == ledger.Kept, "entry = %+v, want one that is kept and has other content in the archive", e)
	kit.Want(t, "the last line", lastLine(t, from.ledger.Ledger).Event, ledger.MarkFetched)
}

// I4: who compares a part each time has compared all of it one day: nothing is downloaded again while others never were.
func TestSample_I4_OldestUnverifiedFirst(t *testing.T) {
	d, from := downloading(t, 100)
	var keys []archive.Key
	remote := func(i int) string { return fmt.Sprintf("b%d", i) }
	for i := range 6 {
		it := from.ledger.Add(fill.Item{Name: fmt.Sprint(i), Vault: "V", Remote: archive.RemoteID(remote(i))})
		it.Archive(d.Now().Add(time.Duration(i)*time.Second), time.Minute)
		keys = append(keys, it.Key)
	}
	next := func(n int, want ...int) Sampled {
		t.Helper()
		s := kit.Value(d.Sample(t.Context(), n))(t)
		var have []int
		for _, k := range s.Next {
			have = append(have, slices.Index(keys, k))
		}
		kit.Want(t, fmt.Sprintf("next %d", n), have, want)
		return s
	}
	next(2, 0, 1)
	next(9, 0, 1, 2, 3, 4, 5)
	for _, one := range []struct {
		i       int
		outcome string
	}{{3, ledger.FetchSame}, {0, ledger.FetchFailed}, {2, ledger.FetchFailed}, {1, ledger.FetchDiffers}, {0, ledger.FetchFailed}} {
		kit.Value(d.get(t.Context(), remote(one.i), one.outcome))(t)
	}
	next(1, 4)
	next(3, 4, 5, 2)                 // the one that failed longest ago
	s := next(100, 4, 5, 2, 0, 3, 1) // and at the end what was compared, the longest ago first
	kit.Want(t, "the counts", s.Counts, (proof.Sample{Archived: 6, Compared: 2, Differ: 1}))
}

// speaking is a ledger with a received document, and the emulated network that gave it.
type speaking struct {
	*Actions
	t      *testing.T
	ledger *boltledger.Ledger
	net    *emulator.Server
	client *networkapi.Client
	key    archive.Key
	bumID  string
	held   string // why nothing may be said
}

func newSpeaking(t *testing.T) *speaking {
	t.Helper()
	s := &speaking{t: t, key: archive.NewKey(time.Now()), ledger: fill.New(t, boltledger.Config{}, ledger.Info{}).Ledger}
	var err error
	s.net, err = emulator.New(emulator.Config{Dir: t.TempDir(), Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}, Clock: time.Now})
	if err == nil {
		s.bumID, err = s.net.PublishReceived(emulator.ReceivedDocument{Data: []byte(`{"externalDocumentIdentifier":{"id":"R-1"}}`)})
	}
	kit.Must(t, err)
	t.Cleanup(func() { s.net.Close() })
	api, _, err := apicall.New(apicall.Config{BaseURL: "https://network.example", Transport: s.net.Transport(), Now: time.Now,
		Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return "s", nil }}})
	kit.Must(t, err)
	s.client = networkapi.New(networkapi.Config{API: api, PageSize: 2})
	now := func() archive.Instant { return archive.Instant{Wall: time.Now()} }
	s.Actions = New(Config{Ledger: s.ledger, Now: now, Log: slog.New(slog.DiscardHandler), HeldReason: func() string { return s.held }})
	sum := archive.Sum([]byte("document"))
	_, err = s.ledger.ApplyArrival(t.Context(), arrival.Change{Key: s.key, At: now(), Events: []arrival.Event{
		arrival.DocumentAnnounced{Document: archive.RemoteID(s.bumID), Kind: archive.NetworkInvoice, Notice: "ack"}, arrival.DocumentHeld{Stored: "document.json", Size: 8, SHA256: sum}, arrival.HeldWhole{Manifest: sum}}})
	kit.Must(t, err)
	return s
}

func (s *speaking) stored() arrival.Arrival {
	s.t.Helper()
	a, known, err := s.ledger.Arrival(s.key)
	kit.Need(s.t, err == nil && known, "arrival known: %t (error %v), want true", known, err)
	return a
}

func (s *speaking) say(w SpokenWord) (arrival.Arrival, error, error) {
	return s.SayWord(s.t.Context(), s.stored(), Person{UID: 1000, Reason: "the price is wrong"}, w, s.client)
}

// I11, I29: a person's word is announced in the ledger before it leaves, leaves once, and its outcome is what is certain: taken, not taken, or
// unknown. No fault makes vaultd repeat it.
func TestSayWord_I11_OnceWithWhatIsCertain(t *testing.T) {
	type row struct {
		fault  emulator.Fault
		want   arrival.Outcome
		posted int // that the network keeps
	}
	kit.Rows(t, map[string]row{
		"Taken":              {emulator.Fault{}, arrival.Taken, 1},
		"Refused":            {emulator.Fault{Kind: emulator.Status, Status: 403}, arrival.NotTaken, 0},
		"NoConnection":       {emulator.Fault{Kind: emulator.Refuse}, arrival.NotTaken, 0},
		"NotDone":            {emulator.Fault{Kind: emulator.Status, Status: 500}, arrival.Unanswered, 0},
		"DoneAndLost":        {emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, arrival.Unanswered, 1},
		"DoneAnd500":         {emulator.Fault{Kind: emulator.Status, Status: 500, IsAfterWork: true}, arrival.Unanswered, 1},
		"NotDoneNorAnswered": {emulator.Fault{Kind: emulator.Abort}, arrival.Unanswered, 0},
	}, func(t *testing.T, row row) {
		s := newSpeaking(t)
		calls := 0
		kit.Must(t, s.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
			if op != "network-notify" {
				return emulator.Fault{}
			}
			calls++
			if said := s.stored().Said; len(said) != 1 || !said[0].AnsweredAt.IsZero() || said[0].UID != 1000 {
				t.Errorf("words in the ledger when the word leaves = %+v, want one of 1000, unanswered", said)
			}
			return row.fault
		}}))
		after, answer, err := s.say(SpokenWord{Word: arrival.Reject})
		kit.Need(t, err == nil && (answer == nil) == (row.want == arrival.Taken),
			"answer = %v (error %v), want one unless the word is taken: %s", answer, err, row.want)
		if said := after.Said[0]; said.Outcome != row.want || said.AnsweredAt.IsZero() || (said.Cause.Code == "") != (answer == nil) {
			t.Errorf("word in the ledger = %+v, want %s, with a time", said, row.want)
		}
		notified := s.net.ReceivedDocuments()[0].Notified
		kit.Check(t, len(notified) == row.posted && calls <= 1,
			"the network has %+v after %d calls, want %d after at most 1", notified, calls, row.posted)
		if len(notified) > 0 && (notified[0].ResponseCode != "BusinessReject" || notified[0].ActionCode != "DocumentRejected" || notified[0].Description != "") {
			t.Errorf("notification = %+v, want BusinessReject, DocumentRejected, without a text", notified[0])
		}
		kit.Want(t, "violations", len(s.net.Violations()), 0)
		notes, err := s.ledger.Notes(s.key)
		kit.Check(t, err == nil && notes[after.Said[0].Rev].Text == "the price is wrong",
			"notes = %v (error %v), want the reason", notes, err)
	})
}

// I29: while nothing may be sent, no word is said nor announced; a word that may have been said is said again only where the person says so.
func TestSayWord_I29_OnlyWhereItMay(t *testing.T) {
	s := newSpeaking(t)
	s.held = "safe mode"
	if _, _, err := s.say(SpokenWord{Word: arrival.Accept}); !errors.Is(err, ErrNothingSaid) || !strings.Contains(err.Error(), "safe mode") || len(s.stored().Said) != 0 {
		t.Errorf("error = %v, words = %+v, want %v because of safe mode, none", err, s.stored().Said, ErrNothingSaid)
	}
	s.held = ""
	kit.Must(t, s.net.SetFaults(emulator.Faults{Hook: func(string, int) emulator.Fault { return emulator.Fault{Kind: emulator.Abort, IsAfterWork: true} }}))
	if _, _, err := s.say(SpokenWord{Word: arrival.Accept}); err != nil {
		t.Fatal(err)
	}
	kit.Must(t, s.net.SetFaults(emulator.Faults{}))
	for _, w := range []SpokenWord{{Word: arrival.Accept}, {Word: arrival.Reject, Again: true}} {
		_, _, err := s.say(w)
		kit.Check(t, errors.Is(err, ledger.ErrIllegal), "%+v: error = %v, want %v", w, err, ledger.ErrIllegal)
	}
	kit.Must(t, s.net.PermitWord(s.bumID))
	if after, answer, err := s.say(SpokenWord{Word: arrival.Accept, Again: true}); err != nil || answer != nil || len(after.Said) != 2 || after.Said[1].Outcome != arrival.Taken {
		t.Errorf("words = %+v, answer = %v (error %v), want a second one that was taken", after.Said, answer, err)
	}
	kit.Want(t, "violations", len(s.net.Violations()), 0)
}

// goingAway is a network that is told while the asker goes away.
type goingAway struct {
	*networkapi.Client
	leave context.CancelFunc
}

func (g goingAway) PostNotification(ctx context.Context, n archive.Notification) error {
	g.leave()
	return g.Client.PostNotification(ctx, n)
}

// A word that was announced is said, and its outcome is committed, though the asker goes away meanwhile.
func TestSayWord_AskerGoesAway(t *testing.T) {
	s := newSpeaking(t)
	ctx, leave := context.WithCancel(t.Context())
	after, answer, err := s.SayWord(ctx, s.stored(), Person{UID: 1000, Reason: "x"}, SpokenWord{Word: arrival.Accept}, goingAway{s.client, leave})
	kit.Check(t, err == nil && answer == nil && after.Said[0].Outcome == arrival.Taken,
		"words = %+v, answer = %v (error %v), want one that was taken", after.Said, answer, err)
}
