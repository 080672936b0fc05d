package operator

import (
	"context"
	"errors"
	"log/slog"
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
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

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
